// Types (TypeScript reads the comments of plain JavaScript), lint and layout of the scripts of pages and of notebooks.
// Run it in a folder where `npm install typescript@5.9.3 eslint@9 @eslint/js@9 globals@16 prettier@3.10.1
// uplot@1.6.32` has been run; nothing is compiled.
import { createRequire } from "node:module";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(join(process.cwd(), "x.js"));
const program_folder = join(dirname(fileURLToPath(import.meta.url)), "../../dynamics_cli");
const assets = join(program_folder, "pages/assets");
const live = join(program_folder, "live.js");
const scripts = readdirSync(assets)
  .filter((name) => name.endsWith(".js") && !name.includes(".min."))
  .map((name) => join(assets, name));
scripts.push(live);

const ts = require("typescript");
const options = {
  checkJs: true,
  allowJs: true,
  noEmit: true,
  strict: true,
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
  types: [],
  skipLibCheck: true,
};
const program = ts.createProgram(
  [join(dirname(require.resolve("uplot/package.json")), "dist/uPlot.d.ts"), ...scripts],
  options,
);
const problems = ts.getPreEmitDiagnostics(program).map((one) =>
  ts.formatDiagnostic(one, {
    getCanonicalFileName: (f) => f,
    getCurrentDirectory: () => assets,
    getNewLine: () => "\n",
  }),
);

const { ESLint } = require("eslint");
const { default: js } = await import(require.resolve("@eslint/js"));
const globals = require("globals");
// the scripts share one scope, so that what one declares is unknown or unused in another: TypeScript looks at that
const rules = {
  ...js.configs.recommended.rules,
  "no-undef": "off",
  "no-unused-vars": "off",
  "no-redeclare": "off",
  eqeqeq: "error",
  "no-eval": "error",
  "no-implied-eval": "error",
  "no-new-func": "error",
  "prefer-const": "error",
  "no-var": "error",
};
const eslint = new ESLint({
  cwd: program_folder,
  overrideConfigFile: true,
  overrideConfig: [
    {
      files: ["pages/assets/*.js"],
      languageOptions: { sourceType: "script", globals: globals.browser },
      rules,
    },
    {
      files: ["live.js"],
      languageOptions: { sourceType: "module", globals: globals.browser },
      rules: { ...rules, "no-undef": "error", "no-unused-vars": "error" },
    },
  ],
});
for (const { filePath, messages } of await eslint.lintFiles(scripts)) {
  for (const { line, message } of messages) problems.push(`${filePath}:${line}: ${message}\n`);
}

const prettier = require("prettier");
for (const file of scripts) {
  const layout = { filepath: file, printWidth: 100 };
  if (!(await prettier.check(readFileSync(file, "utf8"), layout))) {
    problems.push(`${file}: npx prettier --print-width 100 --write lays it out\n`);
  }
}
process.stdout.write(problems.join("") || `${scripts.length} scripts: no problems\n`);
process.exit(problems.length ? 1 : 0);
