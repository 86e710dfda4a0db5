import { describe, expect, it } from 'vitest';
import { Random } from '../../../sim/index.ts';
import { answer, memoryRead, memoryWrite } from '../link/link-bench.ts';
import { FLAG_POISONED, STATUS_ABORT, STATUS_SUCCESS, STATUS_UNSUPPORTED_REQUEST } from '../tlp/tlp.ts';
import { BAR0, BAR2, enabledBench, FUNCTION_ID, functionBench } from './function-bench.ts';

describe('requests to the function', () => {
  it('answers a configuration read after its latency, to the cycle', () => {
    const bench = functionBench();
    const answer = bench.configRead(0x00, 4)!;
    expect(answer.status).toBe(STATUS_SUCCESS);
    expect(answer.bytes).toEqual([0xb3, 0x15, 0x03, 0x10]);
    expect(answer.byteCount).toBe(4);
    // Request: 12 B + 8 B framing = 20 B at 127.2971 ps = 2,546 ps; + 125,000 ps = 127,546 ps. 427 MHz: 54.46 cycles, so it
    // starts at cycle 55 and is answered at cycle 95 = 222,482 ps. Completion 12 + 4 + 8 = 24 B = 3,055.1 ps.
    const edgePs = Math.floor((95 * 1e6) / 427);
    expect(edgePs).toBe(222_482);
    // The serialiser keeps fractions: the arrival is the next whole picosecond.
    expect(answer.timePs).toBe(222_482 + 3_056 + 125_000);
  });

  it('PCIe 2.2.6.2: uses the ID of the last configuration write, and completes with it', () => {
    const bench = functionBench();
    expect(bench.configRead(0x00, 4)!.completerId).toBe(0);
    bench.configWrite(0x3c, 1, 0x0b);
    expect(bench.fn.requesterId()).toBe(FUNCTION_ID);
    expect(bench.configRead(0x3c, 1)).toMatchObject({ bytes: [0x0b], completerId: FUNCTION_ID });
  });

  it('PCIe 2.2.9: completes a configuration write without data', () => {
    const bench = functionBench();
    expect(bench.configWrite(0x04, 2, 0x0006)).toMatchObject({
      status: STATUS_SUCCESS,
      bytes: [],
      byteCount: 4,
    });
    expect(bench.fn.busMasterEnabled).toBe(true);
    expect(bench.fn.isBusMaster()).toBe(true);
  });

  it('passes BAR writes to the core with their BAR, offset and bytes', () => {
    const bench = enabledBench();
    bench.write(BAR0 + 0x80680, [1, 2, 3, 4]);
    bench.write(BAR2 + 0x7f_fff8, [5, 6, 7, 8, 9, 10, 11, 12]);
    expect(bench.target.writes).toMatchObject([
      { bar: 0, offset: 0x80680, bytes: [1, 2, 3, 4] },
      { bar: 2, offset: 0x7f_fff8, bytes: [5, 6, 7, 8, 9, 10, 11, 12] },
    ]);
  });

  it('accepts one write per cycle, or as slowly as the core demands', () => {
    for (const occupiedCycles of [1, 7]) {
      const bench = enabledBench();
      bench.target.occupiedCycles = occupiedCycles;
      const bytes = Uint8Array.from({ length: 8 });
      // 12 + 4 header, 8 data, 8 framing: 32 B = 4,074 ps apart, more than one cycle of 2,342 ps, less than seven.
      for (let at = 0; at < 4; at++)
        memoryWrite(bench.host, { address: BAR2 + 8 * at, source: bytes, lengthBytes: 8 });
      bench.settle();
      const cycles = bench.target.writes.map((write) => write.cycle);
      for (let at = 1; at < 4; at++) {
        const apart = cycles[at]! - cycles[at - 1]!;
        if (occupiedCycles === 7) expect(apart).toBe(7);
        else expect([1, 2]).toContain(apart);
      }
    }
  });

  it('answers a register read after mmioReadCycles with the bytes of the core', () => {
    const bench = enabledBench({ mmioReadCycles: 33 });
    const answer = bench.read(BAR0 + 0x80698, 4)!;
    expect(answer).toMatchObject({ status: STATUS_SUCCESS, bytes: [0xa8, 0xa9, 0xaa, 0xab], byteCount: 4 });
    const taken = bench.target.reads[0]!;
    expect(taken).toMatchObject({ bar: 0, offset: 0x80698 });
    const sentPs = Math.floor(((taken.cycle + 33) * 1e6) / 427);
    // 24 B completion: 3,055.1 ps, and the link's latency.
    expect(answer.timePs - sentPs).toBe(125_000 + 3_056);
  });

  it('PCIe 2.2.5: answers a flush read of no bytes', () => {
    const bench = enabledBench();
    expect(bench.read(BAR0, 0)).toMatchObject({ status: STATUS_SUCCESS, byteCount: 1 });
    expect(bench.target.reads).toEqual([]);
  });

  it('PCIe 2.4.1: lets writes pass reads that wait for their answer, but keeps the order of their effects', () => {
    const bench = enabledBench({ mmioReadCycles: 1000 });
    memoryRead(bench.host, { address: BAR0 + 8, trafficClass: 12, lengthBytes: 4, tag: 200, requesterId: 8 });
    memoryWrite(bench.host, {
      address: BAR0 + 8,
      trafficClass: 12,
      source: Uint8Array.of(1, 2, 3, 4),
      lengthBytes: 4,
    });
    bench.settle();
    expect(bench.target.writes[0]!.cycle - bench.target.reads[0]!.cycle).toBeLessThan(5);
    expect(bench.target.writes[0]!.cycle).toBeGreaterThan(bench.target.reads[0]!.cycle);
    expect(bench.answers.get(200)!.status).toBe(STATUS_SUCCESS);
  });

  it('returns all credits', () => {
    const bench = enabledBench();
    for (let at = 0; at < 200; at++) bench.write(BAR0 + 4 * at, [1, 2, 3, 4]);
    for (let at = 0; at < 50; at++) bench.read(BAR0 + 4 * at, 4);
    bench.read(0x1234, 4);
    expect(bench.fn.completer.count).toBe(0);
    expect(bench.host.transmitter.waitingCount).toBe(0);
  });

  it('answers many reads in order while the link has little room', () => {
    const bench = enabledBench(
      { mmioReadCycles: 3 },
      { endpoint: { completionFifoTlps: 1, transmitBufferTlps: 1 } },
    );
    for (let tag = 100; tag < 112; tag++)
      memoryRead(bench.host, {
        address: BAR0 + 4 * tag,
        trafficClass: 12,
        lengthBytes: 64,
        tag,
        requesterId: 8,
      });
    bench.settle();
    const times = Array.from({ length: 12 }, (_, at) => bench.answers.get(100 + at)!.timePs);
    expect(times).toEqual([...times].sort((left, right) => left - right));
    expect(bench.fn.completer.account.stalledCycles[0]).toBeGreaterThan(0);
  });
});

describe('completions of the device', () => {
  it('are passed to the listener at the instant of their arrival', () => {
    const bench = enabledBench();
    const arrived: number[] = [];
    const { receiveCompletion } = bench.reads;
    bench.reads.receiveCompletion = (offset) => {
      arrived.push(bench.deviceLp.nowPs);
      receiveCompletion(offset);
    };
    bench.software.setConfig(0x168, 4, 0);
    const startPs = bench.hostLp.nowPs;
    answer(bench.host, {
      tag: 3,
      requesterId: FUNCTION_ID,
      trafficClass: 4,
      data: Uint8Array.of(1, 2, 3, 4),
    });
    bench.settle();
    expect(arrived.length).toBe(1);
    expect(arrived[0]! - startPs).toBeGreaterThan(125_000);
    // Unexpected completion, advisory: logged as correctable.
    expect(bench.software.config(0x158)).toBe(1 << 16);
    expect(bench.software.config(0x6a, 2)).toBe(0x0001);
    // CplD of one dword.
    expect(bench.software.config(0x170)).toBe(0x4a00_0001);
  });

  it('PCIe 7.5.1: set the abort bits and the parity bits of Status', () => {
    const bench = enabledBench();
    bench.software.setConfig(0x04, 2, 0x0046);
    answer(bench.host, {
      tag: 1,
      requesterId: FUNCTION_ID,
      trafficClass: 4,
      status: STATUS_UNSUPPORTED_REQUEST,
    });
    bench.settle();
    expect(bench.software.config(0x06, 2)).toBe(0x2010);
    answer(bench.host, { tag: 1, requesterId: FUNCTION_ID, trafficClass: 4, status: STATUS_ABORT });
    bench.settle();
    expect(bench.software.config(0x06, 2)).toBe(0x3010);
    answer(bench.host, {
      tag: 1,
      requesterId: FUNCTION_ID,
      trafficClass: 4,
      data: new Uint8Array(4),
      flags: FLAG_POISONED,
    });
    bench.settle();
    expect(bench.software.config(0x06, 2)).toBe(0xb110);
    expect(bench.software.config(0x158)).toBe(1 << 12);
    bench.software.setConfig(0x06, 2, 0xf900);
    expect(bench.software.config(0x06, 2)).toBe(0x0010);
  });

  it('PCIe 2.3.2: that answer no outstanding request are released and logged', () => {
    const bench = enabledBench();
    answer(bench.host, { tag: 3, requesterId: FUNCTION_ID, trafficClass: 4, data: new Uint8Array(64) });
    bench.settle();
    expect(bench.fn.blocks.errors.uncorrectableCounts[16]).toBe(1);
    expect(bench.devicePort.receiver.heldCount).toBe(0);
  });

  it('PCIe 2.8: that never arrive are a non-fatal completion timeout', () => {
    const bench = enabledBench();
    bench.software.setConfig(0x68, 2, 0x2812);
    bench.fn.reportCompletionTimeout();
    bench.settle();
    expect(bench.software.config(0x158)).toBe(1 << 14);
    expect(bench.messages).toEqual([0x31]);
    bench.software.setConfig(0x160, 4, 0x0006_6010);
    bench.software.setConfig(0x68, 2, 0x2816);
    bench.fn.reportCompletionTimeout();
    bench.settle();
    expect(bench.messages).toEqual([0x31, 0x33]);
  });

  it('PCIe 7.8: are pending in Device Status while the device reports it', () => {
    const bench = functionBench();
    bench.reads.pendingTagCount = 1;
    expect(bench.software.config(0x6a, 2)).toBe(0x0020);
    bench.reads.pendingTagCount = 0;
    expect(bench.software.config(0x6a, 2)).toBe(0);
  });
});

describe('events of one instant', () => {
  it('may be reshuffled without any effect', () => {
    const runOnce = (seed: number) => {
      const bench = enabledBench(
        {},
        {
          shuffle: new Random(seed).unit,
          rootPort: { postedFifoTlps: 32, nonPostedFifoTlps: 32, completionFifoTlps: 32 },
        },
      );
      for (let at = 0; at < 20; at++) {
        memoryWrite(bench.host, {
          address: BAR0 + 8 * at,
          trafficClass: 12,
          source: new Uint8Array(8),
          lengthBytes: 8,
        });
        memoryRead(bench.host, {
          address: BAR0 + 8 * at,
          trafficClass: 12,
          lengthBytes: 8,
          tag: at,
          requesterId: 8,
        });
        answer(bench.host, {
          tag: at,
          requesterId: FUNCTION_ID,
          trafficClass: 4,
          status: STATUS_UNSUPPORTED_REQUEST,
        });
      }
      bench.settle();
      return JSON.stringify([bench.target.writes, bench.target.reads, [...bench.answers]]);
    };
    expect(new Set([1, 2, 3, 4, 5].map(runOnce)).size).toBe(1);
  });
});
