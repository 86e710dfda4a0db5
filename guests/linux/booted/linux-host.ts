/**
 * One Linux on a PC of this process: its console, and the agent through which commands run in it. A command takes simulated
 * time, which only passes while its machine runs: {@link LinuxHost.start} merely types it in.
 */
import type { AccessFault, Pc, PcTimeAccount } from '../../pc/index.ts';
import { AgentDialogue } from '../agent-dialogue.ts';
import { GuestError } from '../guest-error.ts';
import { shellCommand } from '../image/init-scripts.ts';
import { listeningMark } from './server-command.ts';

export interface LinuxResult {
  readonly command: string;
  /** Output and errors, in the order written. */
  readonly output: string;
  /** Exit status as the shell returns it: 0 for success, 128 + signal for a command ended by a signal. */
  readonly exitStatus: number;
  /** The guest killed it after the limit. */
  readonly hasTimedOut: boolean;
  /** Instants of the guest's clock, in picoseconds since power-on. */
  readonly beganPs: number;
  readonly endedPs: number;
  /** Instructions of the host's processor meanwhile, and what its time was spent on: the parts add up to that time. */
  readonly instructions: number;
  readonly spent: PcTimeAccount;
}

export interface LinuxLimits {
  /** After this many seconds of simulated time the guest kills the command and all processes that it started. */
  readonly timeoutSeconds: number;
  /** Called with output as it arrives. */
  readonly onOutput?: ((text: string) => void) | undefined;
}

/** A command that was typed in; its result is there when its machine has run long enough. */
export interface RunningCommand {
  readonly command: string;
  /** Instant at which the guest kills it. */
  readonly deadlinePs: number;
  /** Whether it has said so: a server's side does (server-command.ts). */
  readonly isListening: boolean;
  /** Undefined as long as it runs. */
  readonly result: LinuxResult | undefined;
  /** Why there will be no result. */
  readonly failure: GuestError | undefined;
}

const consolePort = 0;
const agentPort = 1;
const consoleCharactersMax = 256 * 1024;
const outputCharactersMax = 8 * 1024 * 1024;
const killedStatus = 137;
const psPerSecond = 1e12;
/** Seconds of simulated time after which the guest would kill a shell: busybox accepts little more. */
const shellSeconds = 1_000_000;
/** Tells the agent's marks from output; no secret is needed from a guest of one's own. */
const tokenPrefix = 'hca';

class Command implements RunningCommand {
  readonly command: string;
  readonly limits: LinuxLimits;
  readonly beganPs: number;
  readonly instructionsBefore: number;
  readonly accountBefore: PcTimeAccount;
  output = '';
  isListening = false;
  result: LinuxResult | undefined;
  failure: GuestError | undefined;

  constructor(command: string, limits: LinuxLimits, { nowPs, instructionCount, account }: Pc['clock']) {
    this.command = command;
    this.limits = limits;
    this.beganPs = nowPs;
    this.instructionsBefore = instructionCount;
    this.accountBefore = account;
  }

  get deadlinePs(): number {
    return this.beganPs + this.limits.timeoutSeconds * psPerSecond;
  }
}

export class LinuxHost {
  readonly name: string;
  readonly pc: Pc;
  /** Called with what the guest writes to its console. */
  onConsole: (text: string) => void = () => {};
  isReady = false;
  readonly #dialogue: AgentDialogue;
  #console = '';
  #command: Command | undefined;

  constructor(name: string, pc: Pc) {
    this.name = name;
    this.pc = pc;
    this.#dialogue = new AgentDialogue(tokenPrefix, {
      started: (hadCommand) => this.#started(hadCommand),
      printed: (latin1) => this.#printed(latin1),
      ended: (exitStatus) => this.#ended(exitStatus),
    });
    pc.onSerial = (port, byte) => {
      if (port === consolePort) this.#consoleByte(byte);
      else this.#dialogue.take(String.fromCharCode(byte));
    };
  }

  /** The end of what it has written to its console. */
  get consoleText(): string {
    return this.#console;
  }

  /** Whether a command runs. */
  get isBusy(): boolean {
    return this.#command !== undefined;
  }

  /**
   * Types a shell command in. One at a time.
   * @param typed instead of the command, which is the name of both
   * @throws GuestError if one still runs, or the guest is not there
   */
  start(command: string, limits: LinuxLimits, typed = command): RunningCommand {
    if (!this.isReady) throw new GuestError(`${this.name} has not started`);
    if (this.#command !== undefined) throw new GuestError(`a command still runs in ${this.name}`);
    this.#command = new Command(command, limits, this.pc.clock);
    const line = this.#dialogue.begin(typed, Math.ceil(limits.timeoutSeconds));
    this.pc.type(agentPort, new TextEncoder().encode(line));
    return this.#command;
  }

  /**
   * Runs a shell on the console, to which {@link type} types, until its user ends it; meanwhile no command can start.
   * @throws GuestError if a command still runs, or the guest is not there
   */
  openShell(rows: number, columns: number): RunningCommand {
    return this.start('the shell', { timeoutSeconds: shellSeconds }, shellCommand(rows, columns));
  }

  /**
   * Lets an access of the HCA's registers fail, counted from now on: see {@link AccessFault}. The software is not notified.
   * @throws ConfigurationError
   */
  injectAccessFault(fault: AccessFault): void {
    this.pc.function.faults.inject(fault);
  }

  /** Types text into the console. */
  type(text: string): void {
    this.pc.type(consolePort, new TextEncoder().encode(text));
  }

  /** The host was switched off, or makes no progress: the command that runs fails. */
  fail(reason: string): void {
    this.isReady = false;
    const command = this.#command;
    this.#command = undefined;
    const end = this.#console.trimEnd().split(/\r?\n/).slice(-consoleLinesShown).join('\n');
    if (command !== undefined)
      command.failure = new GuestError(`${this.name}: ${reason}; its console ends:\n${end}`);
  }

  /** Continues a guest whose agent waits for commands. */
  continueReady(consoleText: string): void {
    this.#console = consoleText;
    this.isReady = true;
  }

  #consoleByte(byte: number): void {
    const text = String.fromCharCode(byte);
    this.#console += text;
    if (this.#console.length > 2 * consoleCharactersMax)
      this.#console = this.#console.slice(-consoleCharactersMax);
    this.onConsole(text);
  }

  #started(hadCommand: boolean): void {
    if (hadCommand) this.fail('the guest restarted by itself');
    this.isReady = true;
  }

  #printed(latin1: string): void {
    const command = this.#command;
    if (command === undefined) return;
    if (command.output.length < outputCharactersMax) command.output += latin1;
    if (command.output.endsWith(listeningMark)) {
      command.output = command.output.slice(0, -listeningMark.length);
      command.isListening = true;
    }
    command.limits.onOutput?.(utf8Of(latin1));
  }

  #ended(exitStatus: number): void {
    const command = this.#command;
    if (command === undefined) return;
    this.#command = undefined;
    const { nowPs: endedPs, instructionCount, account } = this.pc.clock;
    const { beganPs, limits, output } = command;
    command.result = {
      command: command.command,
      output: utf8Of(output),
      exitStatus,
      hasTimedOut: exitStatus === killedStatus && endedPs - beganPs >= limits.timeoutSeconds * psPerSecond,
      beganPs,
      endedPs,
      instructions: instructionCount - command.instructionsBefore,
      spent: accountBetween(command.accountBefore, account),
    };
  }
}

function accountBetween(before: PcTimeAccount, after: PcTimeAccount): PcTimeAccount {
  const kinds = Object.keys(after) as (keyof PcTimeAccount)[];
  const entries = kinds.map((kind) => [kind, after[kind] - before[kind]] as const);
  return Object.fromEntries(entries) as Record<keyof PcTimeAccount, number>;
}

const consoleLinesShown = 12;

/** Text of a guest's bytes, a character for each. */
const utf8Of = (latin1: string): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(latin1, (each) => each.charCodeAt(0)));
