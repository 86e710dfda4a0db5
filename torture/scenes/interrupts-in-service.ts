/**
 * Interrupts that come while others are served, or wait behind a mask: handlers that take long to leave, one pin for all queues,
 * MSI-X vectors of which several become pending before the function's mask is taken away. Each armed CQ gets its event, soon.
 *
 * A pin is a level: a device that is far away has not yet seen the handler's write when the handler returns, and interrupts again
 * (PCI 3.0, 2.2.6; Intel SDM vol. 3A, 10.8.5: a level that is still high at the end of interrupt).
 *
 *     mask ─► WRITEs on several vectors ─► unmask ─► every event          or: WRITEs ─► handler ─► more of them before it has left
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import { configAccessOf } from '../../host/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { disperse, gather, playRound, type Step } from './crowded-event-queues.ts';
import { askerAndAnswerer, someOrder } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Round {
  readonly steps: readonly Step[];
  /** From the last post until the mask is taken away; undefined of a round without one. */
  readonly maskedNs: number | undefined;
}

interface Args {
  readonly cqCount: number;
  readonly rounds: readonly Round[];
  /** The pin's level outlasts each handler; and the pause between rounds, in which it falls. */
  readonly isFar: boolean;
}

/** From the write that clears the pin to the fall of its level; a handler of one queue takes less than a fifth of it. */
const farLinkPs = 10 * psPerUs;
const pausePs = 300 * psPerUs;

/** Function Mask in the dword that begins the MSI-X capability (PCI 3.0, 6.8.2.3). */
const functionMask = 1 << 30;

function draw(random: Random): SceneDraft {
  const usesPin = random.chance(0.4);
  const isFar = usesPin && random.chance(0.5);
  const cqCount = 2 + random.below(8);
  const gapNs = [0, 500, 3000, 10_000][random.below(4)]!;
  const rounds: Round[] = Array.from({ length: 10 + random.below(isFar ? 10 : 50) }, () => {
    const steps = someOrder(random, cqCount)
      .slice(0, isFar ? 1 : 1 + random.below(cqCount))
      .map((cq) => ({ cq, afterNs: gapNs === 0 ? 0 : random.below(gapNs) }));
    return { steps, maskedNs: !usesPin && random.chance(0.4) ? random.below(50_000) : undefined };
  });
  const args: Args = { cqCount, rounds, isFar };
  return {
    args: args as unknown as JsonValue,
    set: {
      'host.memory.sizeMib': 64,
      'host.interrupt.entryCycles': random.below(2000),
      'host.interrupt.exitCycles': !isFar && random.chance(0.7) ? random.below(60_000) : 750,
      'host.core.count': 1 + random.below(4),
      'driver.useMsix': !usesPin,
      'driver.completionVectorsMax': isFar ? 1 : 1 + random.below(8),
      ...(isFar ? { 'pcie.link.latencyPs': farLinkPs } : {}),
    },
    hasDrawnHardware: false,
  };
}

/** Writes, and is notified by events. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { rounds, isFar } = program.args as unknown as Args;
  const crowd = await gather(program, 0);
  const found: string[] = [];
  if (isFar) await program.cpu.sleep(pausePs);
  const before = handledByPin(program);
  for (const [at, { steps, maskedNs }] of rounds.entries()) {
    // One that is missing may never come.
    if (found.length > 0) break;
    if (maskedNs !== undefined) await mask(program, true);
    const unmask = async (): Promise<void> => {
      if (maskedNs === undefined) return;
      await program.cpu.sleep(1 + maskedNs * psPerNs);
      await mask(program, false);
    };
    const what = await playRound(program, crowd, steps, unmask);
    found.push(...what.map((text) => `round ${at}: ${text}`));
    if (isFar) await program.cpu.sleep(pausePs);
  }
  const handled = handledByPin(program) - before;
  if (isFar && found.length === 0 && handled < 2 * rounds.length)
    found.push(`${handled} interrupts in ${rounds.length} rounds, of a level that outlasts each handler`);
  await barrier(program, 'over');
  await disperse(crowd);
  return found;
}

/** Is written to. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const crowd = await gather(program, 0);
  await barrier(program, 'over');
  await disperse(crowd);
  return [];
}

const handledByPin = ({ host }: ProgramContext): number =>
  host.interrupts
    .counts()
    .reduce((sum, { vector, handled }) => sum + (typeof vector === 'string' ? handled : 0), 0);

async function mask({ cpu, configuration }: ProgramContext, isMasked: boolean): Promise<void> {
  const { pcie } = configuration;
  const access = configAccessOf(cpu);
  const functionId = pcie.rootComplex.deviceBus << 8;
  const { msixOffset } = pcie.function;
  const before = await access.readConfig32(functionId, msixOffset);
  const after = isMasked ? before | functionMask : before & ~functionMask;
  await access.writeConfig32(functionId, msixOffset, after >>> 0);
}

export const interruptsInService: Scene = {
  name: 'interrupts-in-service',
  about: 'interrupts come while others are served, on one pin, or wait for the mask of all vectors to go',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => (results as unknown as readonly string[][]).flat(),
};
