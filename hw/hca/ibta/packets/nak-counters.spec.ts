import { describe, expect, it } from 'vitest';
import { DiagnosticCounters } from '../../statistics/index.ts';
import { countNak } from './nak-counters.ts';
import { TransportCounters } from './transport-counters.ts';

describe('a NAK', () => {
  // Syndromes as 9.7.5.2.1 writes them: bits 6 to 5 are 1 for an RNR NAK, 3 for a NAK, the low bits the timer or the code.
  it.each([
    [0x2e, 'Sent', { rnrNakSent: 1 }, 'rqRnr'],
    [0x2e, 'Received', { rnrNakReceived: 1 }, 'sqRnr'],
    [0x60, 'Sent', { sequenceNakSent: 1 }, 'rqOutOfSequence'],
    [0x60, 'Received', { sequenceNakReceived: 1 }, 'sqOutOfSequence'],
    [0x61, 'Sent', { errorNakSent: 1 }, 'rqRemoteInvalidRequest'],
    [0x62, 'Sent', { errorNakSent: 1 }, 'rqRemoteAccess'],
    [0x63, 'Sent', { errorNakSent: 1 }, undefined],
    [0x62, 'Received', { errorNakReceived: 1 }, undefined],
  ] as const)(
    'IBTA 9.7.5.2: of syndrome %i that was %s counts as %o and %s',
    (syndrome, direction, event, name) => {
      const transport = new TransportCounters();
      const diagnostics = new DiagnosticCounters();
      countNak(syndrome, direction, transport, diagnostics);
      expect(transport.report()).toEqual(event);
      const counted = Object.entries(diagnostics.counts).filter(([, count]) => count > 0);
      expect(counted).toEqual(name === undefined ? [] : [[name, 1]]);
    },
  );
});
