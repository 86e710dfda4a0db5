import { describe, expect, it } from 'vitest';
import { type FrameLedger, frameCableFailures } from './frame-ledger.ts';

const quiet = { isQuiet: true };
const silent: FrameLedger = {
  transmitted: {},
  received: {},
  flowControl: {},
  completed: 0,
  packets: 0,
  dropped: {},
  held: 0,
  busyPs: 0,
};
const sent: FrameLedger = {
  ...silent,
  transmitted: { frames: 9, bytes: 900, lostFrames: 1, lostBytes: 100 },
};
const came: FrameLedger = {
  ...silent,
  received: {
    deliveredFrames: 5,
    deliveredBytes: 500,
    corruptedFrames: 1,
    corruptedBytes: 100,
    fifoDrops: 1,
    linkDownDrops: 1,
    droppedBytes: 200,
  },
  completed: 2,
  packets: 1,
  dropped: { foreignMac: 1 },
  held: 1,
};

const failures = (sender: Partial<FrameLedger>, receiver: Partial<FrameLedger>, wire = quiet): string[] =>
  frameCableFailures(
    { node: 0, wire, ethernet: { ...sent, ...sender } },
    { node: 1, wire, ethernet: { ...came, ...receiver } },
  );

describe('the balance of an Ethernet cable between HCAs', () => {
  it('holds if every frame is in a buffer, is a packet, was dropped or lost, or waits', () => {
    expect(failures({}, {})).toEqual([]);
  });

  it('holds for InfiniBand HCAs, which have no frames', () => {
    expect(frameCableFailures({ node: 0, wire: quiet }, { node: 1, wire: quiet })).toEqual([]);
  });

  it.each([
    ['frames', { transmitted: { frames: 10, bytes: 900, lostFrames: 1, lostBytes: 100 } }, {}],
    ['bytes of frames', { transmitted: { frames: 9, bytes: 901, lostFrames: 1, lostBytes: 100 } }, {}],
    ['frames in buffers or dropped', {}, { completed: 1 }],
    ['frames in buffers or dropped', {}, { packets: 0 }],
  ])('names missing %s', (what, sender, receiver) => {
    expect(failures(sender, receiver)).toEqual([expect.stringContaining(`cable 0 to 1, ${what}:`)]);
  });

  it('includes PAUSE frames, sent by one side and received by the other', () => {
    const paused = { flowControl: { sentFrames: 2, sentBytes: 128, receivedFrames: 9, receivedBytes: 576 } };
    const pausing = { flowControl: { sentFrames: 7, sentBytes: 448, receivedFrames: 2, receivedBytes: 128 } };
    expect(failures(paused, pausing)).toEqual([]);
    expect(failures(paused, {})).toEqual([
      expect.stringContaining('cable 0 to 1, frames:'),
      expect.stringContaining('cable 0 to 1, bytes of frames:'),
    ]);
    expect(failures({}, pausing)).toHaveLength(2);
  });

  it('IEEE 802.3: names a cable that was busy for longer or shorter than its frames take', () => {
    const busy = (busyPs: number): string[] => failures({ busyPs, linkPs: 800_000 }, {});
    // At most a picosecond for each of nine frames, plus one.
    expect([busy(800_000), busy(800_001), busy(799_990)]).toEqual([[], [], []]);
    expect([busy(800_002), busy(799_989)].flat()).toEqual([
      expect.stringContaining('busy: 800002 ps'),
      expect.stringContaining('busy: 799989 ps'),
    ]);
  });

  it('names RoCE packets that are in no frame, or have not arrived as they were sent', () => {
    const row = (packets: number) => ({ RC_SEND_ONLY: { packets, bytes: 0, payloadBytes: 0 } });
    const none = { transmitted: {}, retransmitted: {}, discarded: {}, received: {} };
    const whole = { transmitted: { frames: 3 }, received: { deliveredFrames: 3 }, dropped: {}, completed: 0 };
    const ends = (sentPackets: number, again: number, arrived: number): string[] =>
      failures(
        { ...whole, roce: { ...none, transmitted: row(sentPackets), retransmitted: row(again) } },
        { ...whole, packets: 3, held: 0, roce: { ...none, received: row(arrived) } },
      );
    expect(ends(2, 1, 3)).toEqual([]);
    expect(ends(2, 1, 2)).toEqual([expect.stringContaining('RC_SEND_ONLY: 2 at the far end, 3')]);
    expect(ends(3, 1, 4)).toEqual([expect.stringContaining('packets of RoCE: 4 of 3 frames')]);
  });

  it('lets the far end lag during transfers, and never lead', () => {
    const busy = { isQuiet: false };
    expect(failures({}, { completed: 1 }, busy)).toEqual([]);
    expect(failures({}, { completed: 3 }, busy)).toHaveLength(1);
  });
});
