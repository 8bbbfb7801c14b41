// Runs a script as a child of its own, and speaks of it with Hostel.
//
// Hostel reads frames on our standard output (`frames.rs` says what they are) and sends answers to our standard input. Whatever
// ends one of the two ends the script. `require`, `token`, `name` and `parts` are given by whoever reads this text.
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const { spawn } = require('child_process');

// Three bytes are four letters; with token, kind and number a line stays below 4096 bytes, which a pipe takes whole.
const PIECE = 2976;
// The largest call.
const LARGEST = 8 * 1024 * 1024;
const TOO_LARGE = Buffer.from('{"error": "the call is larger than 8 MiB: write large files in pieces"}');
// Between SIGTERM and SIGKILL, in milliseconds.
const GRACE = 500;
// After the end of the script, in milliseconds: what its own children still print is waited for.
const DRAIN_IDLE = 100;
const DRAIN_LIMIT = 1000;

const [rule, tools, runner, script] = parts;
const [hidden, prefixes, exact] = rule.toString().split('\n').map((line) => line.split(' '));
let folder = null;
let child = null;
let calls = 0;
let held = 0;
let stopped = false;

function write(bytes) {
  const since = Date.now();
  try {
    for (let at = 0; at < bytes.length; ) {
      at += writeSome(bytes, at);
    }
  } catch (error) {
    // Nobody reads what we say.
    end('SIGKILL');
    remove();
    process.exit(1);
  }
  held += Date.now() - since;
}

function writeSome(bytes, at) {
  try {
    return fs.writeSync(1, bytes, at);
  } catch (error) {
    if (error.code !== 'EAGAIN') throw error;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    return 0;
  }
}

function say(kind, data = Buffer.alloc(0), number = 0) {
  const lines = [];
  for (let at = 0; at < Math.max(data.length, 1); at += PIECE) {
    const more = kind === 'c' && at + PIECE < data.length ? '+' : '';
    lines.push(`${token} ${kind} ${number}${more} ${data.subarray(at, at + PIECE).toString('base64')}\n`);
  }
  write(Buffer.from(lines.join(''), 'latin1'));
}

function remove() {
  if (folder) fs.rmSync(folder, { recursive: true, force: true });
}

function end(signal) {
  try {
    if (child && child.pid) process.kill(-child.pid, signal);
  } catch (error) {
    // It has ended.
  }
}

function stop() {
  if (stopped) return;
  stopped = true;
  end('SIGTERM');
  end('SIGCONT');
  setTimeout(() => end('SIGKILL'), GRACE);
}

// A session's `TMPDIR` may lead nowhere.
function temporary() {
  try {
    fs.accessSync(os.tmpdir(), fs.constants.W_OK);
    return os.tmpdir();
  } catch {
    return '/tmp';
  }
}

function fill() {
  const place = path.join(temporary(), name);
  fs.mkdirSync(place, { mode: 0o700 });
  folder = place;
  const code = path.join(folder, 'code');
  const module = path.join(code, 'node_modules', 'hostel_tools');
  fs.mkdirSync(module, { recursive: true, mode: 0o700 });
  for (const [file, content] of [
    [path.join(module, 'index.js'), tools],
    [path.join(code, 'script'), script],
    [path.join(folder, 'run.js'), runner],
  ]) {
    fs.writeFileSync(file, content, { flag: 'wx', mode: 0o600 });
  }
}

// Whether the script sees a variable.
function keeps(name) {
  if (hidden.some((part) => name.toUpperCase().includes(part))) return false;
  return exact.includes(name) || prefixes.some((prefix) => name.startsWith(prefix));
}

// One call at a time stands in the channel: `turn` holds one byte for whoever comes next, and gets it back.
function serve(channel, turn) {
  let received = [];
  let size = 0;
  let wanted = null;
  turn.on('data', () => turn.write('.'));
  turn.write('.');
  channel.on('data', (data) => {
    received.push(data);
    size += data.length;
    if (wanted === null) {
      const all = Buffer.concat(received);
      const line = all.indexOf(10);
      if (line < 0) return;
      wanted = Number(all.toString('latin1', 0, line));
      received = [all.subarray(line + 1)];
      size = received[0].length;
    }
    // One that is too large is read to its end all the same, since its sender listens only then.
    if (wanted > LARGEST) received = [];
    if (size < wanted) return;
    if (wanted > LARGEST) {
      answer(TOO_LARGE);
    } else {
      calls += 1;
      say('c', Buffer.concat(received), calls);
    }
    received = [];
    size = 0;
    wanted = null;
  });
  const answer = (bytes) => channel.write(Buffer.concat([Buffer.from(`${bytes.length}\n`), bytes]));
  for (const one of [channel, turn]) one.on('error', () => {});
  return answer;
}

function hear(answer) {
  let heard = '';
  process.stdin.on('data', (data) => {
    heard += data.toString('latin1');
    if (!data.includes(10)) return;
    const lines = heard.split('\n');
    heard = lines.pop();
    for (const line of lines) {
      // The token, `a`, the call, whether it failed, the answer.
      const words = line.split(' ');
      if (words.length === 5 && words[0] === token && words[1] === 'a' && Number(words[2]) === calls) {
        answer(Buffer.from(words[4], 'base64'));
      }
    }
  });
  process.stdin.on('end', stop);
  process.stdin.on('error', stop);
}

// Passes on what stands in the pipes after the end, and for a short while what comes after it; then `done`.
function drain(open, done) {
  const from = Date.now();
  const heldBefore = held;
  let last = 0;
  let seen = -1;
  for (const stream of open) stream.on('data', () => (last += 1));
  const look = () => {
    // Timers run before what has come meanwhile is read, `setImmediate` after it.
    setImmediate(() => {
      const over = Date.now() - from - (held - heldBefore) >= DRAIN_LIMIT;
      if (open.size === 0 || last === seen || over) {
        done();
      } else {
        seen = last;
        setTimeout(look, DRAIN_IDLE);
      }
    });
  };
  look();
  for (const stream of open) stream.on('end', () => open.size === 0 && done());
}

// Lets somebody read what children in the background will still print, so that they do not die of it.
function leaveReaders(open) {
  for (const stream of open) {
    // No command of anybody's.
    const env = { ...process.env, HOSTEL_CALL: 'reader' };
    const reader = spawn('cat', [], { stdio: [stream, 'ignore', 'ignore'], cwd: '/', env, detached: true });
    reader.on('error', () => {});
    reader.unref();
  }
}

function start() {
  const stdio = ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'];
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => keeps(name)));
  // What modules of the present directory require is found by no other way.
  env.NODE_PATH = [path.join(folder, 'code', 'node_modules'), env.NODE_PATH].filter(Boolean).join(path.delimiter);
  child = spawn(process.execPath, [path.join(folder, 'run.js')], { stdio, env, detached: true });
  child.on('error', (error) => fail(error));
  const open = new Set();
  for (const [stream, kind] of [
    [child.stdout, 'o'],
    [child.stderr, 'e'],
  ]) {
    open.add(stream);
    stream.on('data', (data) => say(kind, data));
    stream.on('end', () => open.delete(stream));
    stream.on('error', () => open.delete(stream));
  }
  child.on('exit', (code, signal) => {
    if (stopped) end('SIGKILL');
    let over = false;
    drain(open, () => {
      if (over) return;
      over = true;
      if (!stopped) leaveReaders(open);
      remove();
      const ended = signal ? 128 + os.constants.signals[signal] : code;
      say('x', Buffer.from(`${ended}${stopped ? ' stopped' : ''}`));
      process.exit(0);
    });
  });
  hear(serve(child.stdio[3], child.stdio[4]));
}

function fail(error) {
  remove();
  say('f', Buffer.from(String(error.message)));
  process.exit(1);
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, stop);
try {
  fill();
  say('b');
  start();
} catch (error) {
  fail(error);
}
