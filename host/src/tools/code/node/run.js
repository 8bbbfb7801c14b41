// Runs a script as if it lay in the present directory: with what it can require from there.
'use strict';
const fs = require('fs');
const Module = require('module');
const path = require('path');
const url = require('url');
const vm = require('vm');

const code = path.join(__dirname, 'code');
// Who has our descriptors.
process.env.HOSTEL_TOOLS_PID = String(process.pid);
// Only this process finds the module.
const rest = process.env.NODE_PATH.split(path.delimiter).slice(1).join(path.delimiter);
if (rest) process.env.NODE_PATH = rest;
else delete process.env.NODE_PATH;

let source = fs.readFileSync(path.join(code, 'script'), 'utf8');
if (source.startsWith('\ufeff')) source = source.slice(1);

// Whether the text is that of a module with `import`, `export` or `await`.
function isModule() {
  try {
    new vm.Script(Module.wrap(source.replace(/^#!.*/, '')), { filename: 'script.js' });
    return false;
  } catch (error) {
    const words = /import statement outside|Unexpected token 'export'|await is only valid|import\.meta/;
    return error instanceof SyntaxError && words.test(error.message);
  }
}

let cwd;
try {
  cwd = process.cwd();
} catch (error) {
  // The directory is gone.
  cwd = '/';
}

if (isModule()) {
  const file = path.join(code, 'script.mjs');
  fs.renameSync(path.join(code, 'script'), file);
  // What a module imports is looked for above it.
  fs.symlinkSync(path.join(cwd, 'node_modules'), path.join(__dirname, 'node_modules'));
  process.argv[1] = file;
  import(url.pathToFileURL(file).href);
} else {
  const file = path.join(cwd, 'script.js');
  const main = new Module('.', null);
  main.filename = file;
  main.paths = Module._nodeModulePaths(cwd);
  process.argv[1] = file;
  process.mainModule = main;
  require.main = main;
  main._compile(source, file);
  main.loaded = true;
}
