/** Defects of numbers at the ends of their fields, and of devices that are reset during a connection request. */
import type { Mistake } from './mistake.ts';

export const farNumberMistakes: readonly Mistake[] = [
  {
    name: 'psn-window-one-more',
    what: 'A requester has one PSN more outstanding than a responder can tell from a repetition.',
    kind: 'comparison off by one',
    scene: 'far-apart',
    file: 'hw/hca/ibta/requests/ibta-requests.ts',
    find: '  PSNS_OUTSTANDING_MAX - ((nextPsn - 1 - lastAckedPsn) & PSN_MASK);',
    replace: '  PSNS_OUTSTANDING_MAX + 1 - ((nextPsn - 1 - lastAckedPsn) & PSN_MASK);',
  },
  {
    name: 'message-one-byte-longer',
    what: 'A message of one byte more than the longest is sent.',
    kind: 'wrong length',
    scene: 'far-apart',
    file: 'hw/hca/ibta/requests/ibta-requests.ts',
    find: 'return messageBytes > messageBytesMaxOf(pair) ?',
    replace: 'return messageBytes > messageBytesMaxOf(pair) + 1 ?',
  },
  {
    name: 'top-of-region-forgotten',
    what: 'The bits above the 52nd of the address of a region are taken for 0.',
    kind: 'wrong address',
    isServed: true,
    file: 'hw/hca/memory/key-check.ts',
    find: `    const offset = addressDistance(cache.start[line]!, cache.startTop[line]!, address, addressTop);
    if`,
    replace: `    const offset = addressDistance(cache.start[line]!, 0, address, addressTop);
    if`,
  },
  {
    name: 'removal-spares-those-who-ask',
    what: 'An ID that has sent its request gets no DEVICE_REMOVAL.',
    kind: 'lost event',
    scene: 'reset-while-connecting',
    file: 'driver/cm/event-channel.ts',
    find: '      if (!isBound(id)) continue;',
    replace: "      if (!isBound(id) || id.state === 'Connecting') continue;",
  },
];
