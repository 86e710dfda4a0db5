/**
 * One Linux guest: QEMU as a child process, its console, and the line to the agent by which commands run in it.
 *
 *     start ─► ready ─► run … run ─► (restart ─► run …) ─► powerOff
 *
 * Every failure is a GuestError that ends with the last lines of the console. After `dispose` the process and its sockets are
 * removed in any case.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { AgentLine, type CommandLimits, type CommandResult } from './agent-line.ts';
import { GuestError } from './guest-error.ts';
import { type QemuOptions, qemuCommandLine } from './qemu.ts';

export interface LinuxGuestOptions extends QemuOptions {
  /** Use of the console: kept for errors, passed on as it arrives, or connected to the user's terminal. */
  readonly console: 'kept' | 'shown' | 'terminal';
  /** Limit in seconds from power-on to the guest's agent. */
  readonly bootTimeoutSeconds: number;
}

/** Console output kept. */
const consoleCharactersMax = 256 * 1024;
const consoleLinesShown = 12;
const powerOffTimeoutMs = 20_000;
const agentSocketTimeoutMs = 20_000;
/** Longest time of the emulator's own commands; a busy machine is slow, and Linux waits a minute for a device. */
const checkSeconds = 150;
/** QEMU reports the reason of its end within this time. */
const complaintPatienceMs = 300;

export class LinuxGuest {
  readonly name: string;
  readonly #options: LinuxGuestOptions;
  readonly #process: ChildProcess;
  readonly #exited: Promise<void>;
  readonly #line: AgentLine;
  readonly #complaints: () => string;
  #console = '';
  #isGone = false;

  private constructor(
    options: LinuxGuestOptions,
    process: ChildProcess,
    line: AgentLine,
    exited: Promise<void>,
    complaints: () => string,
  ) {
    this.name = options.name;
    this.#options = options;
    this.#process = process;
    this.#line = line;
    this.#exited = exited;
    this.#complaints = complaints;
  }

  /** Powers a guest on and waits until it accepts commands. @throws GuestError */
  static async start(options: LinuxGuestOptions): Promise<LinuxGuest> {
    const { file, arguments: parameters } = qemuCommandLine(options);
    const isTerminal = options.console === 'terminal';
    const process = spawn(file, parameters, {
      stdio: isTerminal ? 'inherit' : ['ignore', 'pipe', 'pipe'],
    });
    const exited = Promise.withResolvers<void>();
    process.on('error', () => exited.resolve()).on('close', () => exited.resolve());
    const complaints = keepText(process.stderr, 16_384);
    const socket = await agentSocket(options.agentSocket, process);
    if (socket === undefined) {
      process.kill('SIGKILL');
      throw new GuestError(`QEMU did not start: ${complaints().trim() || `exit code ${process.exitCode}`}`);
    }
    const guest = new LinuxGuest(options, process, new AgentLine(socket), exited.promise, complaints);
    guest.#followConsole();
    try {
      await guest.#ready();
    } catch (error) {
      await guest.dispose();
      throw error;
    }
    return guest;
  }

  /** Milliseconds of processor time that QEMU has used: the guest's processors and its own devices. */
  get cpuMs(): number {
    return this.#isGone ? 0 : cpuMsOf(this.#process.pid!);
  }

  get consoleText(): string {
    return this.#console;
  }

  /** Runs a shell command in the guest. @throws GuestError if the guest does not answer, has ended or restarted */
  async run(command: string, limits: CommandLimits): Promise<CommandResult> {
    return await this.#explained(this.#line.run(command, limits));
  }

  /**
   * Runs a command that must succeed.
   * @param what its name in errors, since a script of several lines is unreadable there
   * @throws GuestError with its output if it fails
   */
  async check(command: string, what = command): Promise<string> {
    const { output, exitStatus, hasTimedOut } = await this.run(command, { timeoutSeconds: checkSeconds });
    if (hasTimedOut) throw new GuestError(`${this.name}: ${what}: not done within ${checkSeconds} s`);
    if (exitStatus !== 0) throw new GuestError(`${this.name}: ${what}: exit ${exitStatus}: ${output.trim()}`);
    return output;
  }

  /** Restarts the guest as its user would, and waits until it accepts commands again. @throws GuestError */
  async restart(): Promise<void> {
    this.#line.expectRestart();
    this.#line.send('sync; reboot -f');
    await this.#ready();
  }

  /** Powers the guest off and waits for QEMU to end; kills QEMU if it does not. */
  async powerOff(): Promise<void> {
    if (!this.#isGone) this.#line.send('sync; poweroff -f');
    await Promise.race([this.#exited, delay(powerOffTimeoutMs, undefined, { ref: false })]);
    await this.dispose();
  }

  /** Kills QEMU if it still runs, like a power failure. @param reason error of a running command */
  async dispose(reason?: string): Promise<void> {
    if (reason !== undefined) this.#line.end(reason);
    if (!this.#isGone) this.#process.kill('SIGKILL');
    await this.#exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }

  /** Resolves when QEMU has ended. */
  get ended(): Promise<void> {
    return this.#exited;
  }

  async #ready(): Promise<void> {
    await this.#explained(this.#line.ready(this.#options.bootTimeoutSeconds));
  }

  #followConsole(): void {
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#console = (this.#console + text).slice(-consoleCharactersMax);
      if (this.#options.console === 'shown') process.stderr.write(text);
    });
    this.#exited.then(() => {
      this.#isGone = true;
      this.#line.end('the guest is powered off');
    });
  }

  /** Adds likely causes to an error: QEMU's complaint, and the end of the console. */
  async #explained<T>(attempt: Promise<T>): Promise<T> {
    try {
      return await attempt;
    } catch (error) {
      if (!(error instanceof GuestError)) throw error;
      await Promise.race([this.#exited, delay(complaintPatienceMs)]);
      const complaint = this.#complaints().trim();
      const console = this.#console.trimEnd().split(/\r?\n/).slice(-consoleLinesShown).join('\n').trim();
      throw new GuestError(
        `${this.name}: ${error.message}` +
          (complaint === '' ? '' : `; QEMU says: ${complaint}`) +
          (console === '' ? '' : `; its console ends:\n${console}`),
      );
    }
  }
}

/** User and system time of a process and its threads, which /proc reports in hundredths of a second (proc(5)). */
function cpuMsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /s, '').split(' ');
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

/** Keeps the end of a stream's text; the function returns it. */
function keepText(stream: NodeJS.ReadableStream | null, charactersMax: number): () => string {
  let kept = '';
  stream?.setEncoding('utf8').on('data', (text: string | Buffer) => {
    kept = (kept + text).slice(-charactersMax);
  });
  return () => kept;
}

/** Connects to the serial port that QEMU opens as a socket; undefined if QEMU ended, or never opened it. */
async function agentSocket(
  path: string,
  process: ChildProcess,
): Promise<ReturnType<typeof connect> | undefined> {
  const deadline = Date.now() + agentSocketTimeoutMs;
  while (process.exitCode === null && process.signalCode === null && Date.now() < deadline) {
    if (existsSync(path)) {
      const socket = connect(path);
      const isConnected = await new Promise<boolean>((resolve) => {
        socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      });
      if (isConnected) return socket;
    }
    await delay(20);
  }
  return undefined;
}
