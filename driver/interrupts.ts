/**
 * Interrupts and event queues together: MSI-X with one vector per queue, or the legacy pin shared by all queues.
 *
 *   vector 0  asynchronous events and command completions
 *   vector 1… completion events, one queue each
 *
 * The interrupt test is a NOP whose answer must come by interrupt; a device that fails it with MSI-X is tried with the
 * legacy pin. Source: interface sheet 8.1 steps 19 to 26, 2.4.
 */
import { asyncEventMask, bar0, CapabilityFlag, EventType, hasCapability, mapEqUnmap } from '../abi/index.ts';
import { swap32 } from '../base/index.ts';
import { type DeviceLimits, eqCountOf, type Firmware, hasIwarp, reservedEqsOf } from './capabilities.ts';
import { type EqEnvironment, EventQueue } from './event-queue.ts';
import { KernelError } from './kernel-error.ts';
import type { DriverConfig } from './parameters.ts';
import { disableMsix, enableMsix, findMsix, type MsixTable } from './pci-function.ts';
import type { Cpu, LegacyInterrupt } from './platform.ts';
import { Teardown } from './teardown.ts';

/** Input modifier that Linux uses for the NOP of the test. */
const interruptTestModifier = 0x1f;

export interface InterruptSetup extends EqEnvironment {
  readonly config: DriverConfig;
  readonly limits: DeviceLimits;
  readonly firmware: Firmware;
  /** INTx pin number, from QUERY_ADAPTER. */
  readonly legacyPin: number;
}

export interface EventQueues {
  readonly asyncEq: EventQueue;
  readonly completionEqs: readonly EventQueue[];
  readonly usesMsix: boolean;
}

/** Sets interrupts up and proves that they arrive; `teardown` receives the inverse steps. */
export async function setUpInterrupts(
  cpu: Cpu,
  setup: InterruptSetup,
  teardown: Teardown,
): Promise<EventQueues> {
  const msix = setup.config.useMsix ? await findMsix(cpu, setup.platform) : undefined;
  const vectors = msix === undefined ? 0 : vectorCountOf(setup, msix);
  if (msix !== undefined && vectors >= 2) {
    const attempt = new Teardown();
    try {
      const queues = await createQueues(cpu, setup, attempt, vectors - 1, { msix });
      if (await interruptsArrive(cpu, setup)) {
        teardown.adopt(attempt);
        return queues;
      }
    } catch (error) {
      await attempt.run(cpu);
      throw error;
    }
    await attempt.run(cpu);
  }
  return setUpLegacy(cpu, setup, teardown);
}

async function setUpLegacy(cpu: Cpu, setup: InterruptSetup, teardown: Teardown): Promise<EventQueues> {
  const { legacy } = setup.platform.interrupts;
  if (legacy === undefined)
    throw new KernelError('EIO', 'MSI-X does not work and there is no legacy interrupt');
  const queues = await createQueues(cpu, setup, teardown, 1, { legacy });
  if (!(await interruptsArrive(cpu, setup))) throw new KernelError('EIO', 'no interrupt arrives');
  return queues;
}

/** Returns the number of vectors that device, platform, event queues and configuration all allow. */
function vectorCountOf(setup: InterruptSetup, msix: MsixTable): number {
  const usableEqs = eqCountOf(setup.limits) - reservedEqsOf(setup.limits);
  return Math.min(
    msix.vectorCount,
    setup.platform.interrupts.vectorCount,
    usableEqs,
    setup.config.completionVectorsMax + 1,
  );
}

type Wiring = { readonly msix: MsixTable } | { readonly legacy: LegacyInterrupt };

async function createQueues(
  cpu: Cpu,
  setup: InterruptSetup,
  teardown: Teardown,
  completionCount: number,
  wiring: Wiring,
): Promise<EventQueues> {
  const { platform, config } = setup;
  if ('msix' in wiring) {
    await enableMsix(cpu, platform, wiring.msix, completionCount + 1);
    teardown.push('MSI-X', (thread) => disableMsix(thread, platform, wiring.msix));
  }
  const firstEqn = reservedEqsOf(setup.limits);
  const interruptOf = (index: number): number => ('msix' in wiring ? index : setup.legacyPin);
  const queues: EventQueue[] = [];
  // Queues are destroyed in ascending order, as in Linux: one inverse step for all of them.
  teardown.push('event queues', (thread) => destroyAll(thread, queues));
  for (let index = 0; index <= completionCount; index++) {
    const entries = index === 0 ? config.asyncEqEntries : config.completionEqEntries;
    queues.push(await EventQueue.create(cpu, setup, firstEqn + index, entries, interruptOf(index)));
  }
  attachHandlers(setup, teardown, queues, wiring);
  const [asyncEq, ...completionEqs] = queues as [EventQueue, ...EventQueue[]];
  await mapAsyncEvents(cpu, setup, teardown, asyncEq);
  for (const queue of queues) queue.ring(cpu, 1);
  return { asyncEq, completionEqs, usesMsix: 'msix' in wiring };
}

async function destroyAll(cpu: Cpu, queues: readonly EventQueue[]): Promise<void> {
  const errors: unknown[] = [];
  for (const queue of queues) await queue.destroy(cpu).catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}

function attachHandlers(
  setup: InterruptSetup,
  teardown: Teardown,
  queues: readonly EventQueue[],
  wiring: Wiring,
): void {
  const { interrupts } = setup.platform;
  if ('msix' in wiring) {
    queues.forEach((queue, vector) => {
      interrupts.attach(vector, (cpu) => queue.handleInterrupt(cpu));
      teardown.push(`vector ${vector}`, () => interrupts.detach(vector));
    });
    return;
  }
  wiring.legacy.attach(async (cpu) => {
    clearLegacyInterrupt(cpu, setup);
    for (const queue of queues) await queue.handleInterrupt(cpu);
  });
  teardown.push('legacy interrupt', () => wiring.legacy.detach());
}

/** Writes the bit of the pin to the clear-interrupt register that the firmware published. */
function clearLegacyInterrupt(cpu: Cpu, setup: InterruptSetup): void {
  const { firmware, legacyPin, platform } = setup;
  const bar = platform.pci.bars[firmware.clearInterruptBar * 2]!;
  const highDword = legacyPin < 32 ? bar0.registers.clearInterrupt.sizeBytes / 2 : 0;
  const address = bar.address + Number(firmware.clearInterruptOffset) + highDword;
  cpu.mmioWrite32(address, swap32(2 ** (legacyPin % 32)));
}

async function mapAsyncEvents(
  cpu: Cpu,
  setup: InterruptSetup,
  teardown: Teardown,
  asyncEq: EventQueue,
): Promise<void> {
  const input = asyncEventMaskOf(setup.limits);
  await setup.commands.execute(cpu, 'MAP_EQ', { input, inputModifier: asyncEq.eqn });
  teardown.push('MAP_EQ', async (thread) => {
    setup.commands.usePolling();
    const inputModifier = (mapEqUnmap | asyncEq.eqn) >>> 0;
    await setup.commands.execute(thread, 'MAP_EQ', { input, inputModifier });
  });
}

/** Linux' mask, plus the events that depend on capabilities. */
function asyncEventMaskOf(limits: DeviceLimits): bigint {
  const bit = (type: number): bigint => 1n << BigInt(type);
  let mask = asyncEventMask;
  if (hasCapability(limits.capabilityFlags, CapabilityFlag.PORT_MNG_CHG_EV)) {
    mask |= bit(EventType.PORT_MNG_CHG_EVENT);
  }
  if (hasIwarp(limits)) mask |= bit(EventType.TCP);
  if (limits.recoverableErrorEvents === 1) mask |= bit(EventType.RECOVERABLE_ERROR_EVENT);
  return mask;
}

/** Switches commands to events and runs the NOP; on failure commands are polled again. */
async function interruptsArrive(cpu: Cpu, setup: InterruptSetup): Promise<boolean> {
  setup.commands.useEvents(2 ** setup.firmware.logOutstandingCommands);
  try {
    await setup.commands.execute(cpu, 'NOP', { inputModifier: interruptTestModifier });
    return true;
  } catch (error) {
    if (!(error instanceof KernelError) || error.code !== 'ETIMEDOUT') throw error;
    setup.commands.usePolling();
    return false;
  }
}
