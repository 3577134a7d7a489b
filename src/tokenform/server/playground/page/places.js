// Where things stand in a text: bytes, lines, and the value that a JSON Pointer names.

// How many UTF-16 units the first `bytes` bytes of a text are.
export function unitsOf(text, bytes) {
  let units = 0;
  for (const sign of text) {
    const code = sign.codePointAt(0);
    bytes -= code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (bytes < 0) break;
    units += sign.length;
  }
  return units;
}

// Line and column (both from 1, columns in characters) of a place in a text.
export function lineOf(text, units) {
  const before = text.slice(0, units);
  const line = before.split("\n").length;
  return { line, column: [...before.slice(before.lastIndexOf("\n") + 1)].length + 1 };
}

// [start, end] of the value that a pointer names in a JSON text, or null.
export function placeOf(text, pointer) {
  if (pointer !== "" && !pointer.startsWith("/")) return null;
  const path = pointer.split("/").slice(1).map((part) => part.replace(/~1/g, "/").replace(/~0/g, "~"));
  try {
    return new Scanner(text).find(path);
  } catch {
    return null;
  }
}

class Scanner {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  blanks() {
    while (/\s/.test(this.text[this.at] ?? "")) this.at += 1;
  }

  string() {
    const start = this.at;
    for (this.at += 1; this.text[this.at] !== '"'; this.at += 1) {
      if (this.at >= this.text.length) throw new Error("open");
      if (this.text[this.at] === "\\") this.at += 1;
    }
    this.at += 1;
    return JSON.parse(this.text.slice(start, this.at));
  }

  // Calls `member` before each value of the object or array here; it says whether to stop.
  members(member) {
    const close = this.text[this.at] === "{" ? "}" : "]";
    for (let index = 0; ; index += 1) {
      this.at += 1;
      this.blanks();
      if (this.text[this.at] === close) break;
      let name = String(index);
      if (close === "}") {
        name = this.string();
        this.blanks();
        this.at += 1;
        this.blanks();
      }
      if (member(name)) return true;
      this.skip();
      this.blanks();
      if (this.text[this.at] === close) break;
      if (this.text[this.at] !== ",") throw new Error("no JSON");
    }
    this.at += 1;
    return false;
  }

  skip() {
    const first = this.text[this.at];
    if (first === '"') this.string();
    else if (first === "{" || first === "[") this.members(() => false);
    else {
      const [word] = /^[^\s,\]}]+/.exec(this.text.slice(this.at)) ?? [];
      if (!word) throw new Error("no JSON");
      this.at += word.length;
    }
  }

  find(path) {
    this.blanks();
    for (const part of path) {
      if (!"{[".includes(this.text[this.at]) || !this.members((name) => name === part)) return null;
    }
    const start = this.at;
    this.skip();
    return [start, this.at];
  }
}
