/** Actions of a scenario's steps: commands in the guests, the two sides of a test, and kernel messages. */
import type { CommandResult } from '../agent-line.ts';
import { GuestError } from '../guest-error.ts';
import { GuestSession } from '../guest-session.ts';
import type { StagePeer, StageSession } from './stage-session.ts';

/** A failed step. */
export class ScenarioFailure extends GuestError {
  override readonly name = 'ScenarioFailure';
}

export interface RunOptions {
  /** Guest in which to run; 0 unless given. */
  readonly guest?: number;
  readonly timeoutSeconds?: number;
}

/** Limit of a test in seconds, by the guest's clock: a busy machine is slow, and a guest's clock may run fast there. */
const usualTimeoutSeconds = 150;

/** Kernel messages of this priority or worse are warnings (linux/kern_levels.h). */
const warningPriority = 4;

/** Kernel messages about emulated processors on a computer that is busy otherwise. */
const slownessWarnings =
  /hrtimer: interrupt took|clocksource|perf: interrupt took|rcu_.*(stall|kthread)|sched: RT throttling|hpet: Lost \d+ RTC/;

export class Stage {
  readonly session: StageSession;
  /** Figures that steps leave for the report. */
  readonly figures: Record<string, number> = {};

  constructor(session: StageSession) {
    this.session = session;
  }

  /** The guests of QEMU, for steps that restart one or cut its power. @throws ScenarioFailure if there are none */
  get qemuSession(): GuestSession {
    if (this.session instanceof GuestSession) return this.session;
    throw new ScenarioFailure('this step needs guests of QEMU');
  }

  /** The program of the simulated host. @throws ScenarioFailure without one */
  get peer(): StagePeer {
    const { peer } = this.session;
    if (peer === undefined) throw new ScenarioFailure('this step needs a simulated host');
    return peer;
  }

  /** Runs a command, with any result. @throws GuestError if the guest has disconnected */
  run(
    command: string,
    { guest = 0, timeoutSeconds = usualTimeoutSeconds }: RunOptions = {},
  ): Promise<CommandResult> {
    return this.session.run(guest, command, { timeoutSeconds });
  }

  /** Runs a command that must succeed; its output. @throws ScenarioFailure if it fails */
  async check(command: string, options: RunOptions = {}): Promise<string> {
    const { output, exitStatus, hasTimedOut } = await this.run(command, options);
    if (hasTimedOut) throw new ScenarioFailure(`${command}: took too long:\n${output}`);
    if (exitStatus !== 0) throw new ScenarioFailure(`${command}: exit ${exitStatus}:\n${output}`);
    return output;
  }

  /** Runs a command that must fail; its output. @throws ScenarioFailure if it succeeds, or does not end */
  async checkFails(command: string, options: RunOptions = {}): Promise<string> {
    const { output, exitStatus, hasTimedOut } = await this.run(command, options);
    if (hasTimedOut) throw new ScenarioFailure(`${command}: took too long:\n${output}`);
    if (exitStatus === 0) throw new ScenarioFailure(`${command}: succeeded:\n${output}`);
    return output;
  }

  /** Milliseconds of processor time used so far: by this process, which emulates the adapters, and by the guests. */
  cpuMs(): { emulator: number; guests: number } {
    const { user, system } = process.cpuUsage();
    const guests = this.session.guests.reduce((sum, guest) => sum + guest.cpuMs, 0);
    return { emulator: (user + system) / 1000, guests };
  }

  /** Runs server and client of a test in guest 0; the client's output. */
  pair({ server, client }: PairedTest): Promise<string> {
    return this.check(`pair '${server}' '${client}'`);
  }

  /** Runs the server of a test in guest 1 and the client in guest 0; the client's output. */
  async pairAcross({ server, client }: PairedTest): Promise<string> {
    await this.check(`test-server '${server}'`, { guest: 1 });
    const output = await this.check(client);
    await this.check('test-server-end', { guest: 1 });
    return output;
  }

  /** Warnings and errors that the kernel printed since the mark, except those about slow processors. */
  async warningsSince(mark: number, guest = 0): Promise<string[]> {
    const lines = (await this.check(`dmesg -r | tail -n +${mark + 1}`, { guest })).split('\n');
    return lines.filter((line) => {
      const priority = /^<(\d+)>/.exec(line)?.[1];
      const isWarning = priority !== undefined && (Number(priority) & 7) <= warningPriority;
      return isWarning && !slownessWarnings.test(line);
    });
  }

  /** Lines that the kernel has printed since the mark. */
  async messagesSince(mark: number, guest = 0): Promise<string> {
    return await this.check(`dmesg | tail -n +${mark + 1}`, { guest });
  }

  /** Number of messages printed by the kernel. */
  async markMessages(guest = 0): Promise<number> {
    return Number(await this.check('dmesg -r | wc -l', { guest }));
  }
}

/** The two sides of a test, as commands. */
export interface PairedTest {
  readonly server: string;
  readonly client: string;
}
