/** Probes of a NIC, in addition to those of every adapter: blocks, descriptor rings, causes of interrupts. */
import { nicMsix } from '../../../abi/nic/index.ts';
import type { Nic } from '../../../hw/nic/index.ts';
import { after, around } from '../around.ts';
import { interruptStepNumbers } from '../kinds.ts';
import type { Stream } from '../stream.ts';
import { watchAdapter } from './adapter.ts';
import { watchAccount, watchFifos, watchLevel } from './blocks.ts';

export function watchNic(stream: Stream, nic: Nic): void {
  const { blocks, domain, pcieFunction, dmaRead } = nic;
  for (const account of nic.accounts) watchAccount(stream, account, domain.clock);
  watchFifos(stream, { pcieFunction, dmaRead, receiveMac: blocks.receiveMac });
  watchAdapter(stream, nic);
  for (const [name, ring, engine] of [
    ['transmit', blocks.transmitRing, blocks.transmitEngine],
    ['receive', blocks.receiveRing, blocks.receiveEngine],
  ] as const) {
    const methods = ['pop', 'writeTail', 'enable', 'stopped', 'reset'] as const;
    watchLevel(stream, `${name} ring: descriptors available`, ring, methods, () => ring.available);
    const note = watchLevel(
      stream,
      `${name} ring: descriptors on chip`,
      ring,
      methods,
      () => ring.cachedCount,
    );
    // The ring wakes its engine when descriptors have arrived.
    if (note !== undefined) after<{ wake(cycle: number): void }>(engine, 'wake', note);
    watchLevel(stream, `${name} ring: head`, ring, methods, () => ring.head);
    watchLevel(stream, `${name} ring: tail`, ring, methods, () => ring.tail);
  }
  if (stream.has('interrupts')) watchCauses(stream, nic);
}

/** Causes as they are set: `vector` holds the cause's bits, before they are assigned to vectors. */
function watchCauses(stream: Stream, { blocks: { interrupts }, domain }: Nic): void {
  const track = stream.track('interrupts', `causes of ${nicMsix.vectorCount} vectors`);
  const { requested } = interruptStepNumbers;
  around(interrupts, 'set', (set) => (causes, cycle) => {
    if (causes !== 0) stream.instant('interrupt', track, domain.clock.edgePs(cycle), requested, causes);
    set(causes, cycle);
  });
}
