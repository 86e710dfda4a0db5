/** Hosts of this process as the guests of a scenario (../scenarios): the same steps, in simulated time. */
import { ConfigurationError } from '../../../base/index.ts';
import type { CommandLimits, CommandResult } from '../agent-line.ts';
import { addressOf } from '../booted/index.ts';
import type { VectorComparison } from '../interrupts.ts';
import {
  type Scenario,
  Stage,
  type StagePeer,
  type StageResult,
  type StageSession,
  type Step,
} from '../scenarios/index.ts';
import { LinuxMachine, type LinuxMachineOptions } from './linux-machine.ts';

const psPerMs = 1e9;
/** Steps know hosts as guests. */
const guestNames = `names=$(sed -n 's/ host/ guest/p' /etc/hosts); echo "$names" >>/etc/hosts`;
/** Loads the drivers that a guest in QEMU has: without the Ethernet driver, which logs warnings about features that the adapter lacks. */
const scenarioDrivers = 'modprobe mlx4_core && modprobe -a mlx4_ib ib_uverbs ib_umad rdma_ucm';

class InsideSession implements StageSession {
  readonly linux: LinuxMachine;
  /** The guests' processors are this process's. */
  readonly guests: readonly { readonly cpuMs: number }[];
  readonly peer: StagePeer | undefined;
  readonly machine = { report: async () => this.linux.devices() };
  #isFinished = false;

  constructor(linux: LinuxMachine) {
    this.linux = linux;
    this.peer = linux.peer;
    this.guests = linux.hosts.map(() => ({ cpuMs: 0 }));
  }

  get nowMs(): number {
    return this.linux.nowPs / psPerMs;
  }

  /** A PC has one. */
  adapterAddress(): string {
    return addressOf(this.linux.host(0).pc);
  }

  async run(guest: number, command: string, limits: CommandLimits): Promise<CommandResult> {
    const { beganPs, endedPs, ...result } = await this.linux.run(guest, command, limits);
    return { ...result, elapsedMs: (endedPs - beganPs) / psPerMs };
  }

  async load(): Promise<void> {
    await this.linux.load(scenarioDrivers);
    for (const node of this.linux.hosts.keys()) await this.linux.check(node, guestNames, 'naming the guests');
  }

  async compareInterrupts(): Promise<VectorComparison[]> {
    return await this.linux.compareInterrupts();
  }

  async finish(): Promise<StageResult> {
    const interrupts = await this.compareInterrupts();
    this.linux.close();
    this.#isFinished = true;
    return { interrupts, report: this.linux.devices() };
  }

  /** Ends the guests of a scenario that failed, too: its traces are complete up to the failure. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.linux.stop('the scenario is over');
    if (!this.#isFinished) this.linux.abandon();
    this.#isFinished = true;
  }
}

/** A stage whose guests are hosts of this process. */
export class InsideStage extends Stage {
  declare readonly session: InsideSession;
}

/** A scenario without the steps that only guests of QEMU can take. */
export function insideScenarioOf(scenario: Scenario): Scenario {
  const without = (steps: readonly Step[]): Step[] => steps.filter(({ needsQemu = false }) => !needsQemu);
  const { steps, briefSteps } = scenario;
  return {
    ...scenario,
    steps: without(steps),
    ...(briefSteps === undefined ? {} : { briefSteps: without(briefSteps) }),
  };
}

/** Starts the hosts of a scenario. @throws ConfigurationError for one that needs what a PC of this process lacks; GuestError */
export async function startInside(
  scenario: Scenario,
  options: Omit<LinuxMachineOptions, 'hosts'>,
): Promise<InsideStage> {
  const { guests, faults, peer, set = {}, isLoaded } = scenario;
  const need = needOfQemu(scenario);
  if (need !== undefined)
    throw new ConfigurationError('scenario', scenario.name, `one that needs no guest of QEMU: ${need}`);
  const linux = await LinuxMachine.start({
    ...options,
    extent: 'all',
    hosts: guests,
    ...(peer === undefined ? {} : { peer: { run: peer } }),
    set: { ...options.set, ...set },
    faults: [...(options.faults ?? []), ...faults],
  });
  const session = new InsideSession(linux);
  try {
    if (isLoaded) await session.load();
  } catch (error) {
    await session[Symbol.asyncDispose]();
    throw error;
  }
  return new InsideStage(session);
}

/** Why a scenario runs on guests of QEMU alone; undefined if PCs of this process can run it. */
export function needOfQemu(scenario: Scenario): string | undefined {
  const { guests, hcas, stranger, hasSoftIwarp = false, needsQemu } = scenario;
  if (hcas > guests) return 'it has two adapters in one guest';
  if (stranger !== undefined) return 'kernels of 32 bits have no Soft-RoCE';
  if (hasSoftIwarp) return 'kernels of 32 bits have no Soft-iWARP';
  return needsQemu;
}
