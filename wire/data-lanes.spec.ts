/**
 * Credits of single data lanes. A UD SEND of n bytes has 34 bytes of headers and CRCs: 2048 bytes of payload take 33 blocks of 64 bytes, and a
 * lane that has half of 16,896 bytes has 132 blocks, room for four of them.
 */
import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../base/index.ts';
import { Opcode } from './opcodes.ts';
import { wireParameters } from './parameters.ts';
import { WireBench } from './wire-bench.ts';
import { checkConfig } from './wire-sizing.ts';

const { UD_SEND_ONLY } = Opcode;
const usPs = 1_000_000;
const twoLanes = {
  dataVls: '2',
  receiveBufferBytes: 16_896,
  creditReturnBytes: 64,
  transmitAheadBytes: 65_536,
} as const;

describe('two data lanes', () => {
  it('IBTA 7.9: share the buffer in equal parts, each with credits of its own', async () => {
    const bench = new WireBench(twoLanes);
    const upPs = await bench.bringUp();
    bench.b.consumesAtOnce = false;
    const { a, b } = bench;
    a.at(upPs, () => {
      for (let packet = 0; packet < 4; packet++) {
        expect(a.port.canTransmit(UD_SEND_ONLY, 2048, 0, 0)).toBe(true);
        a.send(UD_SEND_ONLY, 2048, packet, 0, 0);
      }
      expect(a.port.canTransmit(UD_SEND_ONLY, 2048, 0, 0)).toBe(false);
      expect(a.port.canTransmit(UD_SEND_ONLY, 2048, 0, 1)).toBe(true);
      a.send(UD_SEND_ONLY, 2048, 10, 0, 1);
    });
    await bench.runTo(upPs + 50 * usPs);
    expect(b.arrivals.map(({ psn }) => psn)).toEqual([0, 1, 2, 3, 10]);
    // Lane 0: 132 blocks promised, 132 sent, none free. Lane 1: 33 sent.
    expect(a.port.inspect()).toMatchObject({
      sender: {
        credits: { totalBlocksSent: 132, limit: 132 },
        creditsOfLanes: [{ totalBlocksSent: 33, limit: 132 }],
      },
    });
    expect(b.port.inspect()).toMatchObject({
      buffers: {
        freeBlocks: 0,
        adjustedBlocksReceived: 132,
        lanes: [{ freeBlocks: 99, adjustedBlocksReceived: 33 }],
      },
    });
    expect(b.port.receiveBufferedBytes).toBe(5 * 33 * 64);
    expect(b.port.laneFigures.map((lane) => [lane.received.packets, lane.bufferedBytesMax])).toEqual([
      [4, 8448],
      [1, 2112],
    ]);
  });

  it('IBTA 7.9.4: count modulo 4096 in each lane, with flow control packets that name it', async () => {
    const bench = new WireBench({ ...twoLanes, transmitAheadBytes: 0 });
    const upPs = await bench.bringUp();
    const { a } = bench;
    // 126 packets of 33 blocks: 4158 = 4096 + 62. The other lane sends two.
    let left = 126;
    const next = () => {
      while (left > 0 && a.port.canTransmit(UD_SEND_ONLY, 2048, 0, 1)) {
        left--;
        a.send(UD_SEND_ONLY, 2048, left, 0, 1);
      }
    };
    a.onSpace = next;
    a.at(upPs, () => {
      a.send(UD_SEND_ONLY, 2048, 500, 0, 0);
      a.send(UD_SEND_ONLY, 2048, 501, 0, 0);
      next();
    });
    await bench.runTo(upPs + 500 * usPs);
    expect(bench.b.arrivals).toHaveLength(128);
    expect(a.port.inspect()).toMatchObject({
      sender: {
        credits: { totalBlocksSent: 66, limit: 66 + 132 },
        creditsOfLanes: [{ totalBlocksSent: 62, limit: 62 + 132 }],
      },
    });
  });

  it('wait each for its own credits, while the port waits only if nothing leaves', async () => {
    const bench = new WireBench(twoLanes);
    const upPs = await bench.bringUp();
    const { a, b } = bench;
    b.consumesAtOnce = false;
    a.at(upPs, () => {
      for (let packet = 0; packet < 4; packet++) a.send(UD_SEND_ONLY, 2048, packet, 0, 0);
    });
    a.at(upPs + 20 * usPs, () => {
      expect(a.port.canTransmit(UD_SEND_ONLY, 2048, 0, 0)).toBe(false);
      a.send(UD_SEND_ONLY, 2048, 9, 0, 1);
    });
    a.onSpace = () => {
      if (a.port.canTransmit(UD_SEND_ONLY, 2048, 0, 0)) a.send(UD_SEND_ONLY, 2048, 4, 0, 0);
    };
    b.at(upPs + 30 * usPs, () => b.consumeAll());
    await bench.runTo(upPs + 60 * usPs);
    const [first, second] = a.port.laneFigures;
    expect(first!.creditWaitPs).toBeGreaterThan(10 * usPs);
    expect(first!.creditWaitPs).toBeLessThan(11 * usPs);
    expect(second!.creditWaitPs).toBe(0);
    // From the limit's arrival until it counts.
    expect(a.port.transmitted.creditWaitPs).toBeLessThanOrEqual(1);
    expect(b.arrivals.map(({ psn }) => psn)).toEqual([0, 1, 2, 3, 9, 4]);
  });

  it('keep the records of a lane that waits, whatever passes in the other', async () => {
    const bench = new WireBench({ ...twoLanes, transmitAheadBytes: 0 });
    const upPs = await bench.bringUp();
    const { a, b } = bench;
    b.consumesAtOnce = false;
    a.at(upPs, () => a.send(UD_SEND_ONLY, 2048, 7, 0, 0));
    let left = 2000;
    const next = () => {
      while (left > 0 && a.port.canTransmit(UD_SEND_ONLY, 2048, 0, 1))
        a.send(UD_SEND_ONLY, 2048, left--, 0, 1);
    };
    a.onSpace = next;
    a.at(upPs + 5 * usPs, next);
    const first = () => b.held[0]!;
    const consume = () => {
      for (const offset of b.held.splice(1)) b.port.consume(offset);
    };
    for (let us = 6; us < 2000; us++) b.at(upPs + us * usPs, consume);
    await bench.runTo(upPs + 2100 * usPs);
    // 4 MiB have passed, four times what the channel holds.
    expect(b.arrivals).toHaveLength(2001);
    const payload = b.port.rxBytes.subarray(first() + 64, first() + 64 + 4);
    expect([...payload]).toEqual([7, 8, 9, 10]);
  });
});

describe('the number of data lanes', () => {
  it('is refused where a lane could not hold its longest packet and return credits', () => {
    const config = { ...defaultsOf(wireParameters), creditReturnBytes: 64 };
    expect(() => checkConfig({ ...config, dataVls: '2' })).not.toThrow();
    // 16,384 bytes by 4 are 64 blocks; the longest packet has 66.
    expect(() => checkConfig({ ...config, dataVls: '4' })).toThrow(/wire.dataVls is 4.*17152 bytes/);
    expect(() => checkConfig({ ...config, dataVls: '8', receiveBufferBytes: 65_536 })).not.toThrow();
  });
});
