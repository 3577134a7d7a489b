// Which keywords refuse a character: those without any one of which it would be accepted.
//
// The engine is asked about the schema without each of them; nothing here knows what a keyword means.

const MOST = 60;
const NO_ASSERTIONS = new Set(["$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "$ref", "$id",
  "$schema", "$anchor", "$comment", "title", "description", "default", "examples", "allOf", "anyOf", "oneOf", "items",
  "prefixItems", "if", "then", "else", "not"]);
const BY_NAME = new Set(["$defs", "definitions", "properties", "patternProperties", "dependentSchemas"]);
const LISTS = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const ONE = new Set(["items", "additionalProperties", "contains", "propertyNames", "if", "then", "else", "not", "unevaluatedProperties", "unevaluatedItems"]);

const step = (part) => `/${part.replace(/~/g, "~0").replace(/\//g, "~1")}`;

// The places and names of a schema's assertions.
function* assertions(schema, pointer = "") {
  if (schema === null || typeof schema !== "object" || Array.isArray(schema)) return;
  for (const [keyword, value] of Object.entries(schema)) {
    const here = pointer + step(keyword);
    if (!NO_ASSERTIONS.has(keyword)) yield { pointer, keyword };
    if (BY_NAME.has(keyword)) for (const [name, part] of Object.entries(value ?? {})) yield* assertions(part, here + step(name));
    else if (LISTS.has(keyword) && Array.isArray(value)) for (const [place, part] of value.entries()) yield* assertions(part, `${here}/${place}`);
    else if (ONE.has(keyword)) yield* assertions(value, here);
  }
}

// The schema's text without one keyword; the other keys keep their order.
function without(source, { pointer, keyword }) {
  const schema = JSON.parse(source);
  const names = pointer.split("/").slice(1).map((part) => part.replace(/~1/g, "/").replace(/~0/g, "~"));
  delete names.reduce((part, name) => part[name], schema)[keyword];
  return JSON.stringify(schema);
}

// Up to three of them; none where no single keyword is to blame, or the schema has too many.
export async function reasons(engine, asked, found, signal) {
  const { source } = asked.constraint;
  let listed;
  try {
    listed = [...assertions(JSON.parse(source))];
  } catch {
    return [];
  }
  const near = ({ pointer }) => (found.refused.pointer ?? "").startsWith(pointer) || pointer.startsWith(found.refused.pointer ?? "");
  listed = [...listed.filter(near), ...listed.filter((one) => !near(one))].slice(0, MOST);
  if (listed.length === 0 || source.length * listed.length > 120000) return [];
  const sources = listed.map((one) => without(source, one));
  const { accepted } = await engine.reach({ ...asked, sources }, signal);
  return listed.filter((_, index) => accepted[index] !== null && accepted[index] > found.refused.offset).slice(0, 3);
}
