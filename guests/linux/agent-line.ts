/**
 * The emulator's end of the line to the agent in the guest (agent-dialogue.ts): runs commands there, one after another, and
 * returns their output and exit status. The line is a separate serial port, so neither kernel messages nor a user's shell
 * interfere.
 */
import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { AgentDialogue } from './agent-dialogue.ts';
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

/** Exit status of a command ended by SIGKILL, as by the guest's time limit. */
const killedStatus = 137;

/** A guest that is late by this much beyond a command's limit is considered dead. */
const graceMs = 15_000;

/** Limit of the output kept of one command; the rest is dropped. */
const outputCharactersMax = 8 * 1024 * 1024;

interface PendingCommand {
  readonly command: string;
  readonly limits: CommandLimits;
  readonly startMs: number;
  readonly settled: PromiseWithResolvers<CommandResult>;
  output: string;
}

export class AgentLine {
  readonly #stream: Duplex;
  readonly #dialogue = new AgentDialogue(randomBytes(6).toString('hex'), {
    started: (hadCommand) => this.#agentStarted(hadCommand),
    printed: (latin1) => this.#addOutput(latin1),
    ended: (exitStatus) => this.#finish(exitStatus),
  });
  #pending: PendingCommand | undefined;
  #ready = Promise.withResolvers<void>();
  #ended: GuestError | undefined;

  constructor(stream: Duplex) {
    this.#stream = stream;
    this.#ready.promise.catch(() => {});
    stream.setEncoding('latin1');
    stream.on('data', (text: string) => this.#dialogue.take(text));
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
    this.#dialogue.abandon();
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
    const settled = Promise.withResolvers<CommandResult>();
    this.#pending = {
      command,
      limits,
      startMs: performance.now(),
      settled,
      output: '',
    };
    this.#stream.write(this.#dialogue.begin(command, limits.timeoutSeconds));
    const silence = setTimeout(
      () => settled.reject(new GuestError(`the guest no longer answers (${command})`)),
      limits.timeoutSeconds * 1000 + graceMs,
    );
    try {
      return await settled.promise;
    } finally {
      clearTimeout(silence);
      this.#pending = undefined;
      this.#dialogue.abandon();
    }
  }

  /** Sends a command that takes the guest down, and waits for no answer. */
  send(command: string): void {
    this.#stream.write(this.#dialogue.farewell(command));
  }

  /** No more input can arrive: waiting callers get the reason. */
  end(reason: string): void {
    this.#ended ??= new GuestError(reason);
    this.#pending?.settled.reject(this.#ended);
    this.#ready.reject(this.#ended);
  }

  #agentStarted(hadCommand: boolean): void {
    if (hadCommand) this.#pending?.settled.reject(new GuestError('the guest restarted by itself'));
    this.#pending = undefined;
    this.#ready.resolve();
  }

  #addOutput(latin1: string): void {
    const pending = this.#pending;
    if (pending === undefined) return;
    if (pending.output.length < outputCharactersMax) pending.output += latin1;
    pending.limits.onOutput?.(Buffer.from(latin1, 'latin1').toString());
  }

  #finish(exitStatus: number): void {
    const pending = this.#pending;
    if (pending === undefined) return;
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
