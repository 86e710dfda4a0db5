/** Faults of packets on a cable of InfiniBand, at the port that sends them: of an adapter or of a switch. */
import { ConfigurationError } from '../../base/index.ts';
import type { Random } from '../../sim/index.ts';
import type { WirePort } from '../../wire/index.ts';
import type { FaultLog } from './fault-log.ts';
import { type FaultOf, isByRule, packetNthOf } from './kinds.ts';
import { copyDelayPs, effectOf, passDelayPs, selectionOf } from './packet-effects.ts';

/**
 * Injects a fault into the packets that a port sends; must be called before time starts.
 * @throws ConfigurationError for a fault of PAUSE frames, which InfiniBand does not have
 */
export function injectPacketFault(
  fault: FaultOf<'packet'>,
  { faults, transmitted }: WirePort,
  log: FaultLog,
  random: Random,
): void {
  const observer = { fired: () => log.fired(fault) };
  if (fault.only === 'pauses')
    throw new ConfigurationError('only', fault.only, 'packets of another kind on a cable of InfiniBand');
  if (isByRule(fault) || fault.packet === 'congested') {
    faults.addRule(effectOf(fault), selectionOf(fault, random), observer);
    return;
  }
  const { packet, delay, by } = fault;
  const nth = packetNthOf(fault);
  const { first, last } = nth;
  if (packet === 'duplicated') {
    faults.copyPackets({ passes: 1, delayPs: delay ?? copyDelayPs }, observer, first, last);
  } else if (packet === 'reordered') {
    faults.reorderPackets({ passes: by ?? 1, delayPs: delay ?? passDelayPs }, observer, first, last);
  } else {
    log.firesOnNth(fault, nth, () => transmitted.packetCount);
    if (packet === 'corrupted') faults.corruptPackets(first, last);
    else if (packet === 'lost') faults.losePackets(first, last);
    else faults.delayPackets(delay!, first, last);
  }
}
