/**
 * The emulator's end of the line to the agent in the guest (image/init-scripts.ts): runs commands there, one after another, and
 * returns their output and exit status.
 *
 * The line is a separate serial port, so neither kernel messages nor a user's shell interfere. Each command has a unique token,
 * and its output is the text between the two marks with that token:
 *
 *     host   7f3a1c.4 30 ls /\n LF                   token, seconds it may take, command as `printf %b` takes it
 *     guest  RS 7f3a1c.4 " begin" LF                 RS is the control character 1e
 *     guest  …whatever the command prints, errors among it…
 *     guest  RS 7f3a1c.4 " end 0" LF                 exit status, as the shell gives it
 *
 * Text outside two marks is the output of a program left running, and is dropped. The guest sends RS "ready" LF whenever its
 * agent starts; if that happens while a command runs, the guest has restarted by itself.
 */
import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { GuestError } from './guest-error.ts';

export interface CommandResult {
  readonly command: string;
  /** Output and errors, in the order written. */
  readonly output: string;
  /** Exit status as the shell returns it: 0 for success, 128 + signal for a command ended by a signal. */
  readonly exitStatus: number;
  readonly hasTimedOut: boolean;
  readonly elapsedMs: number;
}

export interface CommandLimits {
  /** After this many seconds the guest kills the command and all processes that it started. */
  readonly timeoutSeconds: number;
  /** Called with output as it arrives. */
  readonly onOutput?: (text: string) => void;
}

const mark = '\x1e';
const readyLine = `${mark}ready\n`;

/** Exit status of a command ended by SIGKILL, as by the guest's time limit. */
const killedStatus = 137;

/** A guest that is late by this much beyond a command's limit is considered dead. */
const graceMs = 15_000;

/** Limit of the output kept of one command; the rest is dropped. */
const outputCharactersMax = 8 * 1024 * 1024;

interface PendingCommand {
  readonly token: string;
  readonly command: string;
  readonly limits: CommandLimits;
  readonly startMs: number;
  readonly settled: PromiseWithResolvers<CommandResult>;
  output: string;
  hasBegun: boolean;
}

export class AgentLine {
  readonly #stream: Duplex;
  readonly #secret = randomBytes(6).toString('hex');
  #received = '';
  #count = 0;
  #pending: PendingCommand | undefined;
  #ready = Promise.withResolvers<void>();
  #ended: GuestError | undefined;

  constructor(stream: Duplex) {
    this.#stream = stream;
    this.#ready.promise.catch(() => {});
    stream.setEncoding('latin1');
    stream.on('data', (text: string) => this.#take(text));
    stream.on('error', () => {});
    stream.on('close', () => this.end('the guest is gone'));
  }

  /** Resolves when the agent has started; after `expectRestart`, when it has restarted. @throws GuestError */
  async ready(timeoutSeconds: number): Promise<void> {
    const limit = setTimeout(
      () => this.#ready.reject(new GuestError(`the guest has not started within ${timeoutSeconds} s`)),
      timeoutSeconds * 1000,
    );
    try {
      await this.#ready.promise;
    } finally {
      clearTimeout(limit);
    }
  }

  /** The guest is about to restart: the present command is abandoned, and `ready` waits for the next agent. */
  expectRestart(): void {
    this.#pending?.settled.reject(new GuestError('the guest restarts'));
    this.#pending = undefined;
    this.#ready = Promise.withResolvers();
    this.#ready.promise.catch(() => {});
  }

  /**
   * Runs a shell command. One at a time: the caller awaits it before it starts the next.
   * @throws GuestError if the guest no longer answers, has ended or restarted
   */
  async run(command: string, limits: CommandLimits): Promise<CommandResult> {
    if (this.#ended !== undefined) throw this.#ended;
    if (this.#pending !== undefined) throw new GuestError('a command is still running in the guest');
    const token = `${this.#secret}.${++this.#count}`;
    const settled = Promise.withResolvers<CommandResult>();
    this.#pending = {
      token,
      command,
      limits,
      startMs: performance.now(),
      settled,
      output: '',
      hasBegun: false,
    };
    this.#stream.write(`${token} ${limits.timeoutSeconds} ${escaped(command)}\n`);
    const silence = setTimeout(
      () => settled.reject(new GuestError(`the guest no longer answers (${command})`)),
      limits.timeoutSeconds * 1000 + graceMs,
    );
    try {
      return await settled.promise;
    } finally {
      clearTimeout(silence);
      this.#pending = undefined;
    }
  }

  /** Sends a command that takes the guest down, and waits for no answer. */
  send(command: string): void {
    this.#stream.write(`${this.#secret}.x 60 ${escaped(command)}\n`);
  }

  /** No more input can arrive: waiting callers get the reason. */
  end(reason: string): void {
    this.#ended ??= new GuestError(reason);
    this.#pending?.settled.reject(this.#ended);
    this.#ready.reject(this.#ended);
  }

  #take(text: string): void {
    this.#received += text;
    for (;;) {
      const pending = this.#pending;
      const isDone = pending?.hasBegun ? this.#takeOutput(pending) : this.#takeIdle(pending);
      if (isDone) return;
    }
  }

  /** Processes text before a command's first mark. Returns true if more must be received. */
  #takeIdle(pending: PendingCommand | undefined): boolean {
    const begin = pending === undefined ? undefined : `${mark}${pending.token} begin\n`;
    const readyAt = this.#received.indexOf(readyLine);
    const beginAt = begin === undefined ? -1 : this.#received.indexOf(begin);
    if (readyAt >= 0 && (beginAt < 0 || readyAt < beginAt)) {
      this.#received = this.#received.slice(readyAt + readyLine.length);
      this.#agentStarted();
      return false;
    }
    if (begin !== undefined && beginAt >= 0) {
      this.#received = this.#received.slice(beginAt + begin.length);
      pending!.hasBegun = true;
      return false;
    }
    this.#received = this.#received.slice(-256);
    return true;
  }

  #agentStarted(): void {
    if (this.#pending !== undefined)
      this.#pending.settled.reject(new GuestError('the guest restarted by itself'));
    this.#pending = undefined;
    this.#ready.resolve();
  }

  /** Processes text between a command's two marks. Returns true if more must be received. */
  #takeOutput(pending: PendingCommand): boolean {
    const end = `${mark}${pending.token} end `;
    const endAt = this.#received.indexOf(end);
    const lineEnd = endAt < 0 ? -1 : this.#received.indexOf('\n', endAt);
    const readyAt = this.#received.indexOf(readyLine);
    if (readyAt >= 0 && (endAt < 0 || readyAt < endAt)) {
      this.#received = this.#received.slice(readyAt + readyLine.length);
      this.#agentStarted();
      return false;
    }
    if (lineEnd < 0) {
      // A mark may have arrived partially: a possible beginning is kept.
      const safe = endAt >= 0 ? endAt : lastMarkStart(this.#received, end.length);
      this.#addOutput(pending, this.#received.slice(0, safe));
      this.#received = this.#received.slice(safe);
      return true;
    }
    this.#addOutput(pending, this.#received.slice(0, endAt));
    const exitStatus = Number(this.#received.slice(endAt + end.length, lineEnd));
    this.#received = this.#received.slice(lineEnd + 1);
    this.#finish(pending, exitStatus);
    return false;
  }

  #addOutput(pending: PendingCommand, latin1: string): void {
    if (latin1 === '') return;
    if (pending.output.length < outputCharactersMax) pending.output += latin1;
    pending.limits.onOutput?.(Buffer.from(latin1, 'latin1').toString());
  }

  #finish(pending: PendingCommand, exitStatus: number): void {
    const elapsedMs = performance.now() - pending.startMs;
    this.#pending = undefined;
    pending.settled.resolve({
      command: pending.command,
      output: Buffer.from(pending.output, 'latin1').toString(),
      exitStatus,
      hasTimedOut: exitStatus === killedStatus && elapsedMs >= pending.limits.timeoutSeconds * 1000,
      elapsedMs,
    });
  }
}

/** A command on one line: `printf %b` restores it, followed by a line feed. */
const escaped = (command: string): string =>
  [...Buffer.from(`${command}\n`)].map((byte) => escapes.get(byte) ?? octalUnlessPrintable(byte)).join('');

const escapes: ReadonlyMap<number, string> = new Map([
  [0x0a, '\\n'],
  [0x5c, '\\\\'],
]);

const octalUnlessPrintable = (byte: number): string =>
  byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\0${byte.toString(8).padStart(3, '0')}`;

/** Offset of the last mark character that could begin a mark of `markLength`; else the end of the text. */
function lastMarkStart(text: string, markLength: number): number {
  const at = text.indexOf(mark, Math.max(0, text.length - Math.max(markLength, readyLine.length)));
  return at < 0 ? text.length : at;
}
