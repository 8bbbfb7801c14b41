// The tools of Hostel, for a script that `execute_code` runs.
//
// Each function waits, and returns the tool's result as an object. A call that failed throws nothing: its result has a member
// `error`. What a tool needs comes first, the rest as an object: `read_file('a.txt', { offset: 10 })`; or all of it as one object.
'use strict';
const fs = require('fs');

// Calls and answers go through the one, the right to make a call through the other.
const CHANNEL = 3;
const TURN = 4;

function sleep(milliseconds) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

function read(descriptor, size) {
  const bytes = Buffer.alloc(size);
  let got = 0;
  while (got < size) {
    const count = fs.readSync(descriptor, bytes, got, size - got);
    if (count === 0) throw new Error('nobody answers');
    got += count;
  }
  return bytes;
}

function write(descriptor, bytes) {
  for (let at = 0; at < bytes.length; ) at += fs.writeSync(descriptor, bytes, at);
}

function call(tool, args) {
  if (process.env.HOSTEL_TOOLS_PID !== String(process.pid)) {
    return { error: `\`${tool}\` can be called by the script itself, and not by a program that it starts` };
  }
  try {
    const request = Buffer.from(`${tool}\n${JSON.stringify(args)}`);
    read(TURN, 1);
    try {
      write(CHANNEL, Buffer.concat([Buffer.from(`${request.length}\n`), request]));
      let line = '';
      for (let byte = ''; byte !== '\n'; byte = read(CHANNEL, 1).toString('latin1')) line += byte;
      return JSON.parse(read(CHANNEL, Number(line)).toString('utf8'));
    } finally {
      write(TURN, Buffer.from('.'));
    }
  } catch (error) {
    return { error: `\`${tool}\` was not answered: ${error.message}` };
  }
}

// Makes the function of a tool, which takes the parameters `names` by their place.
function tool(name, ...names) {
  return (...given) => {
    if (given.length === 1 && given[0] !== null && typeof given[0] === 'object') return call(name, given[0]);
    const args = {};
    given.forEach((value, at) => {
      if (at < names.length) args[names[at]] = value;
      else Object.assign(args, value);
    });
    return call(name, args);
  };
}

module.exports = {
  terminal: tool('terminal', 'command'),
  read_file: tool('read_file', 'path'),
  write_file: tool('write_file', 'path', 'content'),
  search_files: tool('search_files', 'pattern'),
  patch: tool('patch', 'path', 'old_string', 'new_string'),

  json_parse(text) {
    return JSON.parse(text);
  },

  // Quotes `text` so that a shell reads exactly that as one word.
  shell_quote(text) {
    return `'${String(text).replace(/'/g, `'"'"'`)}'`;
  },

  // Calls `fn` until it throws nothing, and returns what it returns. `delay` is in seconds, and doubles each time.
  retry(fn, max_attempts = 3, delay = 2) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return fn();
      } catch (error) {
        if (attempt >= max_attempts) throw error;
        sleep(delay * 1000 * 2 ** (attempt - 1));
      }
    }
  },
};
