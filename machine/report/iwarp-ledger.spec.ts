import { describe, expect, it } from 'vitest';
import {
  type IwarpLedger,
  iwarpCableFailures,
  iwarpLoopbackFailures,
  type LoopedStreams,
} from './iwarp-ledger.ts';

const quiet = { isQuiet: true };
const silent: IwarpLedger = {
  sent: {},
  received: {},
  terminatesSent: {},
  terminatesReceived: {},
  tcp: {},
  waitedPs: {},
  unacknowledged: { segments: 0, streamBytes: 0 },
  discardedBytes: 0,
  frames: 0,
  dropped: {},
};
const rows = { WRITE: { segments: 5, payloadBytes: 5000 }, SEND: { segments: 2, payloadBytes: 200 } };
/** One WRITE of 1000 bytes has not arrived. */
const fewer = { ...rows, WRITE: { segments: 4, payloadBytes: 4000 } };

const failures = (near: Partial<IwarpLedger>, far: Partial<IwarpLedger>, wire = quiet): string[] =>
  iwarpCableFailures(
    { node: 0, wire, iwarp: { ...silent, sent: rows, ...near } },
    { node: 1, wire, iwarp: { ...silent, received: rows, ...far } },
  );

describe('the balance of DDP segments over a cable', () => {
  it('holds if each segment has arrived, and for transports without segments', () => {
    expect(failures({}, {})).toEqual([]);
    expect(iwarpCableFailures({ node: 0, wire: quiet }, { node: 1, wire: quiet })).toEqual([]);
  });

  it('fails for a lost segment that TCP does not send again', () => {
    expect(failures({}, { received: fewer })).toEqual([
      'cable 0 to 1, WRITE segments: 4 at the far end, 5 at the near end',
      'cable 0 to 1, WRITE payload: 4000 at the far end, 5000 at the near end',
    ]);
  });

  // The FPDU of a tagged segment: 2 of length, 14 of header, 4 of CRC (RFC 5044, 4; RFC 5041, 4).
  it('holds if TCP still sends the missing segment, or the acknowledgement is missing', () => {
    const unacknowledged = { segments: 1, streamBytes: 1020 };
    expect(failures({ unacknowledged }, { received: fewer })).toEqual([]);
    expect(failures({ unacknowledged }, {})).toEqual([]);
  });

  it('holds if the missing segment arrived after its QP had left the stream', () => {
    expect(failures({}, { received: fewer, discardedBytes: 1020 })).toEqual([]);
  });

  // 39 bytes hold one FPDU of 20 bytes at most.
  it.each([
    [{ segments: 1, streamBytes: 1020 }, 0, 1, 1020],
    [{ segments: 0, streamBytes: 0 }, 39, 1, 39],
    [{ segments: 1, streamBytes: 900 }, 19, 1, 919],
  ])(
    'fails if more are missing than %o and %i discarded bytes explain',
    (unacknowledged, discardedBytes, segments, bytes) => {
      const received = { ...fewer, SEND: { segments: 1, payloadBytes: 100 } };
      const why = 'may be held by TCP or have arrived after their QP had left the stream';
      expect(failures({ unacknowledged }, { received, discardedBytes })).toEqual([
        `cable 0 to 1: 2 segments are missing, of which ${segments} ${why}`,
        `cable 0 to 1: 1100 bytes of payload are missing, of which ${bytes} ${why}`,
      ]);
    },
  );

  it.each([
    [{ unacknowledged: { segments: 9, streamBytes: 9000 } }, quiet],
    [{}, { isQuiet: false }],
    [{ tcp: { lost: 1 } }, quiet],
  ])('fails always if more arrived than was sent (%j, %j)', (near, wire) => {
    const received = { ...rows, SEND: { segments: 3, payloadBytes: 200 } };
    expect(failures(near, { received }, wire)).toEqual([
      'cable 0 to 1, SEND segments: 3 at the far end, 2 at the near end',
    ]);
  });

  it.each([{ terminatesSent: { '1101': 1 } }, { tcp: { resetsSent: 1 } }, { tcp: { lost: 1 } }])(
    'demands nothing of a stream that ended (%j)',
    (near) => {
      expect(failures(near, { received: fewer })).toEqual([]);
    },
  );
});

describe('the balance of a card’s streams to itself', () => {
  const looped: LoopedStreams = {
    ...{ sent: rows, received: rows, unacknowledged: silent.unacknowledged, discardedBytes: 0 },
    frames: {
      ...{ sentFrames: 9, sentBytes: 900, receivedFrames: 9, receivedBytes: 900 },
      ...{ droppedFrames: 0, heldFrames: 0 },
    },
  };
  const failuresOf = (changes: Partial<LoopedStreams>): string[] =>
    iwarpLoopbackFailures({ node: 3, iwarp: { ...silent, looped: { ...looped, ...changes } } });

  it('holds if each frame and segment has arrived, and without such streams', () => {
    expect(failuresOf({})).toEqual([]);
    expect(iwarpLoopbackFailures({ node: 3, iwarp: silent })).toEqual([]);
    expect(iwarpLoopbackFailures({ node: 3 })).toEqual([]);
  });

  it('fails for a lost segment, a lost frame, and bytes that no frame has', () => {
    expect(failuresOf({ received: fewer })).toEqual([
      'node 3 to itself, WRITE segments: 4 at the far end, 5 at the near end',
      'node 3 to itself, WRITE payload: 4000 at the far end, 5000 at the near end',
    ]);
    const frames = { ...looped.frames, receivedFrames: 8, receivedBytes: 901 };
    expect(failuresOf({ frames })).toEqual([
      'node 3 to itself, frames of TCP: 8 at the far end, 9 at the near end',
      'node 3 to itself, bytes of them: 901 at the far end, 900 at the near end',
    ]);
  });

  it('demands nothing of frames in the loopback, and of those that a reset has removed', () => {
    const some = { receivedFrames: 7, receivedBytes: 700 };
    expect(failuresOf({ received: fewer, frames: { ...looped.frames, ...some, heldFrames: 2 } })).toEqual([]);
    expect(failuresOf({ received: fewer, frames: { ...looped.frames, ...some, droppedFrames: 2 } })).toEqual(
      [],
    );
  });
});
