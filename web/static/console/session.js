// The token: kept for this tab, handed in by the form or once by the address.

const KEY = "fleetgraph.token";

export const storedToken = () => sessionStorage.getItem(KEY);
export const storeToken = (token) => sessionStorage.setItem(KEY, token);
export const forgetToken = () => sessionStorage.removeItem(KEY);

/** Take the token of `/#token=…` and remove it from the address and the history at once; null when there is none. */
export function takeTokenOfAddress() {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    return decodeURIComponent(found[1]);
  } catch {
    return found[1];
  }
}
