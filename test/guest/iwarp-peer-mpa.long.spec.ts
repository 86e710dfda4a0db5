/**
 * Linux's Soft-iWARP and an iWARP card whose host wants another MPA than usual: connections with their data, and refusals. `hca wire` and tshark
 * read all that passes the cable.
 */
import { checkIwarp, handshakesAre } from './iwarp-capture.ts';
import { testScenario } from './suite.ts';

/** All that a scenario sends is less. */
const sizeBytes = 2 ** 24;

const reads = 'serves 1 READs at once, has 1 outstanding';

await testScenario('iwarp-peer-ready-read', 'debian', { sizeBytes, check: checkIwarp });

const isOneRefused = handshakesAre({
  words: [
    'MPA request, revision 1, no CRC',
    'MPA reply, revision 1, no CRC',
    'MPA request, revision 1, CRC',
    'MPA reply, revision 1, CRC',
    `MPA request, revision 2, no CRC, ${reads}`,
  ],
  unansweredCount: 1,
});
await testScenario('iwarp-peer-revision-1', 'debian', { sizeBytes, check: isOneRefused });

const isBySend = handshakesAre({
  words: [
    `MPA request, revision 2, no CRC, ${reads}, peer-to-peer, ready by WRITE or READ`,
    `MPA reply, revision 2, no CRC, ${reads}, peer-to-peer, ready by SEND`,
    // Linux 6.1, iwarp.h (__rdmap_term_set_layer): layer and type have each other's place.
    'TERMINATE, message 1: catastrophic error of this stream (RDMAP, type 2, code 0x7)',
    `MPA request, revision 2, no CRC, ${reads}, peer-to-peer, ready by SEND`,
    `MPA reply, revision 2, no CRC, ${reads}, peer-to-peer, ready by WRITE`,
    'TERMINATE, message 1: no common ready-to-receive message (MPA, type 0, code 0x7)',
  ],
  unansweredCount: 0,
});
await testScenario('iwarp-peer-ready-send', 'debian', { sizeBytes, check: isBySend });

const isRefused = handshakesAre({
  words: [
    `MPA request, revision 2, CRC, ${reads}`,
    `MPA reply, revision 2, CRC, markers, ${reads}`,
    `MPA request, revision 2, CRC, markers, ${reads}, peer-to-peer, ready by SEND or WRITE or READ`,
    'MPA reject, revision 2, CRC, serves 0 READs at once, has 0 outstanding',
  ],
  unansweredCount: 0,
});
await testScenario('iwarp-peer-markers', 'debian', { sizeBytes, check: isRefused });
