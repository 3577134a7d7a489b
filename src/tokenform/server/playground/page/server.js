// The engine behind the server's JSON.  The same calls as wasm.js: `inspect`, `reach`, and where there is a model `next`,
// `write`, `compare` and `fill`; a model that fills canvases has the last alone.

export class Refused extends Error {
  constructor(error) {
    super(error.message);
    Object.assign(this, error);
  }
}

export function serverEngine(config) {
  const fill = (asked, take, signal) => stream("fill", asked, take, signal);
  const causal = {
    next: (asked, signal) => answer("next", asked, signal),
    write: (asked, take, signal) => stream("write", asked, take, signal),
    compare: (asked, take, signal) => stream("compare", asked, take, signal),
  };
  return {
    kinds: null,
    model: config.model,
    served: config.served,
    keys: config.keys,
    line: `${config.model}, ${config.vocabulary.toLocaleString("en")} tokens, on this server.`,
    inspect: (asked, signal) => answer("inspect", asked, signal),
    reach: (asked, signal) => answer("reach", asked, signal),
    fill,
    ...(config.fills ? {} : causal),
  };
}

async function post(name, asked, signal) {
  const key = sessionStorage.getItem("key");
  const headers = { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const response = await fetch(`api/${name}`, { method: "POST", headers, body: JSON.stringify(asked), signal });
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new Refused(told.error ?? { kind: "Error", message: `the server answered ${response.status}.` });
}

const answer = async (name, asked, signal) => (await post(name, asked, signal)).json();

// Events as they come; the promise is done when the last has.
async function stream(name, asked, take, signal) {
  const reader = (await post(name, asked, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      if (!part.startsWith("data: ")) continue;
      const event = JSON.parse(part.slice(6));
      if (event.type === "error") throw new Refused(event);
      take(event);
    }
  }
}
