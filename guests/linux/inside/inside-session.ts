/** Hosts of this process as the guests of a scenario (../scenarios): the same steps, in simulated time. */
import { ConfigurationError } from '../../../base/index.ts';
import type { CommandLimits, CommandResult } from '../agent-line.ts';
import type { VectorComparison } from '../interrupts.ts';
import { type Scenario, Stage, type StageResult, type StageSession } from '../scenarios/index.ts';
import { LinuxMachine, type LinuxMachineOptions } from './linux-machine.ts';

const psPerMs = 1e9;

export class InsideSession implements StageSession {
  readonly linux: LinuxMachine;
  /** The guests' processors are this process's. */
  readonly guests: readonly { readonly cpuMs: number }[];
  readonly machine = { report: async () => this.linux.devices() };

  constructor(linux: LinuxMachine) {
    this.linux = linux;
    this.guests = linux.hosts.map(() => ({ cpuMs: 0 }));
  }

  async run(guest: number, command: string, limits: CommandLimits): Promise<CommandResult> {
    const { beganPs, endedPs, ...result } = await this.linux.run(guest, command, limits);
    return { ...result, elapsedMs: (endedPs - beganPs) / psPerMs };
  }

  async load(): Promise<void> {
    await this.linux.load();
  }

  async compareInterrupts(): Promise<VectorComparison[]> {
    return await this.linux.compareInterrupts();
  }

  async finish(): Promise<StageResult> {
    const interrupts = await this.compareInterrupts();
    this.linux.close();
    return { interrupts, report: this.linux.devices() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.linux.stop('the scenario is over');
  }
}

/** A stage whose guests are hosts of this process. */
export class InsideStage extends Stage {
  declare readonly session: InsideSession;
}

/** Starts the hosts of a scenario. @throws ConfigurationError for one that needs what a PC of this process lacks; GuestError */
export async function startInside(
  scenario: Scenario,
  options: Omit<LinuxMachineOptions, 'hosts'>,
): Promise<InsideStage> {
  const { guests, hcas, faults, set = {}, isLoaded } = scenario;
  if (!runsInside(scenario))
    throw new ConfigurationError('scenario', scenario.name, 'one with an HCA for each host and nothing else');
  const linux = await LinuxMachine.start({
    ...options,
    extent: 'all',
    hosts: guests,
    set: { ...options.set, ...set },
    faults: [...(options.faults ?? []), ...faults],
  });
  if (isLoaded) await linux.load();
  return new InsideStage(new InsideSession(linux));

  function runsInside({ peer, stranger, hasSoftIwarp = false }: Scenario): boolean {
    return hcas === guests && peer === undefined && stranger === undefined && !hasSoftIwarp;
  }
}
