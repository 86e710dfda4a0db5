/**
 * Interrupts arrive while others are served, or wait for a mask: slow handlers, one pin for all queues, several MSI-X vectors that become pending
 * before the function is unmasked. Each armed CQ gets its event soon.
 *
 * A pin is a level: a device that is far away has not yet seen the handler's write when the handler returns, and interrupts again (PCI 3.0,
 * 2.2.6; Intel SDM vol. 3A, 10.8.5: a level that is still high at the end of interrupt).
 *
 *     mask ─► WRITEs on several vectors ─► unmask ─► every event          or: WRITEs ─► handler ─► more of them before it has left
 */

import { configAccessOf } from '../../host/index.ts';
import { Crowd } from './crowded-event-queues.ts';
import type { ArgsOf, Draft, Draws, Stage } from './language/index.ts';
import { psPerNs, psPerUs, scene, times } from './language/index.ts';

/**
 * Time from the write that clears the pin to the fall of its level; a handler of one queue takes less than a fifth of
 * it.
 */
const farLinkPs = 10 * psPerUs;
const pauseUs = 300;

/** Function Mask in the dword that begins the MSI-X capability (PCI 3.0, 6.8.2.3). */
const functionMask = 1 << 30;

function draw(random: Draws) {
  const usesPin = random.chance(0.4);
  // The pin's level outlasts each handler; it falls in the pause between rounds.
  const isFar = usesPin && random.chance(0.5);
  const cqCount = 2 + random.below(8);
  const gapNs = random.oneOf([0, 500, 3000, 10_000]);
  const rounds = times(10 + random.below(isFar ? 10 : 50), () => {
    const steps = random
      .order(cqCount)
      .slice(0, isFar ? 1 : 1 + random.below(cqCount))
      .map((cq) => ({ cq, afterNs: gapNs === 0 ? 0 : random.below(gapNs) }));
    // Time from the last post until the vector is unmasked; undefined in a round without a mask.
    return { steps, maskedNs: !usesPin && random.chance(0.4) ? random.below(50_000) : undefined };
  });
  const set = {
    'host.memory.sizeMib': 64,
    'host.interrupt.entryCycles': random.below(2000),
    'host.interrupt.exitCycles': !isFar && random.chance(0.7) ? random.below(60_000) : 750,
    'host.core.count': 1 + random.below(4),
    'driver.useMsix': !usesPin,
    'driver.completionVectorsMax': isFar ? 1 : 1 + random.below(8),
    ...(isFar ? { 'pcie.link.latencyPs': farLinkPs } : {}),
  };
  return { args: { cqCount, rounds, isFar }, set } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

async function asker(stage: Stage<Args>): Promise<void> {
  const { cqCount, rounds, isFar } = stage.args;
  const crowd = await Crowd.gather(stage, cqCount);
  if (isFar) await stage.sleepUs(pauseUs);
  const before = handledByPin(stage);
  for (const [at, { steps, maskedNs }] of rounds.entries()) {
    // A missing event may never arrive.
    if (stage.wrong.length > 0) break;
    if (maskedNs !== undefined) await mask(stage, true);
    await crowd.playRound(`round ${at}`, steps, async () => {
      if (maskedNs === undefined) return;
      await stage.cpu.sleep(1 + maskedNs * psPerNs);
      await mask(stage, false);
    });
    if (isFar) await stage.sleepUs(pauseUs);
  }
  const handled = handledByPin(stage) - before;
  if (isFar && stage.wrong.length === 0 && handled < 2 * rounds.length)
    stage.accuse(`${handled} interrupts in ${rounds.length} rounds, of a level that outlasts each handler`);
  await stage.meet('over');
}

async function answerer(stage: Stage<Args>): Promise<void> {
  await Crowd.gather(stage, stage.args.cqCount);
  await stage.meet('over');
}

const handledByPin = ({ context }: Stage<Args>): number =>
  context.host.interrupts
    .counts()
    .reduce((sum, { vector, handled }) => sum + (typeof vector === 'string' ? handled : 0), 0);

async function mask({ cpu, context }: Stage<Args>, isMasked: boolean): Promise<void> {
  const { pcie } = context.configuration;
  const access = configAccessOf(cpu);
  const functionId = pcie.rootComplex.deviceBus << 8;
  const before = await access.readConfig32(functionId, pcie.function.msixOffset);
  const after = isMasked ? before | functionMask : before & ~functionMask;
  await access.writeConfig32(functionId, pcie.function.msixOffset, after >>> 0);
}

export const interruptsInService = scene({
  about: 'interrupts come while others are served, on one pin, or wait for the mask of all vectors to go',
  draw,
  programs: [asker, answerer],
});
