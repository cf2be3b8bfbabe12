-- Posts one body over and over; LOAD_BODY names its file, LOAD_TOKEN is the bearer token.
local file = assert(io.open(os.getenv("LOAD_BODY"), "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
file:close()
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer " .. os.getenv("LOAD_TOKEN")

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "seconds": %.6f, "p50_ms": %.3f, "p95_ms": %.3f, "bytes": %d, "errors": '
      .. '{"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}}\n',
    summary.requests,
    summary.duration / 1e6,
    latency:percentile(50) / 1e3,
    latency:percentile(95) / 1e3,
    summary.bytes,
    errors.connect,
    errors.read,
    errors.write,
    errors.status,
    errors.timeout
  ))
end
