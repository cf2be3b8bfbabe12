// Many changes, few queries: ids gather for a moment and are read together.

import { ApiError } from "./api.js";

const GATHER_MS = 300;
const RETRY_MS = 3000;
export const BATCH_MAX = 100;

/**
 * Calls `read(ids)` with at most `BATCH_MAX` gathered ids, one call at a time. Ids are read again when the server did
 * not answer; another refusal goes to `refused(error)`.
 */
export class Refresh {
  constructor(read, refused) {
    this.read = read;
    this.refused = refused;
    this.ids = new Set();
    this.timer = null;
    this.busy = false;
  }

  add(...ids) {
    for (const id of ids) this.ids.add(id);
    this.schedule(GATHER_MS);
  }

  /** Read one id without waiting for others. */
  now(id) {
    this.ids.add(id);
    this.schedule(0);
  }

  clear() {
    this.ids.clear();
    clearTimeout(this.timer);
    this.timer = null;
  }

  schedule(wait) {
    if (this.timer === null && !this.busy && this.ids.size > 0) this.timer = setTimeout(() => this.run(), wait);
  }

  async run() {
    this.timer = null;
    this.busy = true;
    const batch = [...this.ids].slice(0, BATCH_MAX);
    for (const id of batch) this.ids.delete(id);
    let wait = GATHER_MS;
    try {
      await this.read(batch);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === "UNREACHABLE" || error.code === "RATE_LIMITED") {
        for (const id of batch) this.ids.add(id);
        wait = RETRY_MS;
      } else {
        this.refused(error);
      }
    } finally {
      this.busy = false;
    }
    this.schedule(wait);
  }
}
