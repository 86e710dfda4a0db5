import { describe, expect, it } from 'vitest';
import { BAR0, BAR2, FUNCTION_ID, functionBench } from './function-bench.ts';
import {
  FLAG_POISONED,
  SIDEBAND_RESET,
  STATUS_ABORT,
  STATUS_SUCCESS,
  STATUS_UNSUPPORTED_REQUEST,
} from './tlp.ts';

const enabled = (...options: Parameters<typeof functionBench>) => {
  const bench = functionBench(...options);
  bench.software.enable();
  return bench;
};

describe('requests to the function', () => {
  it('answers a configuration read after its latency, to the cycle', () => {
    const bench = functionBench();
    const answer = bench.configRead(0x00, 4)!;
    expect(answer.status).toBe(STATUS_SUCCESS);
    expect(answer.bytes).toEqual([0xb3, 0x15, 0x03, 0x10]);
    expect(answer.byteCount).toBe(4);
    // Request: 12 B + 8 B framing = 20 B at 127.2971 ps = 2,546 ps; + 125,000 ps = 127,546 ps. 427 MHz: 54.46 cycles,
    // so it is taken up at cycle 55 and answered at cycle 95 = 222,482 ps. Completion 12 + 4 + 8 = 24 B = 3,055.1 ps.
    const edgePs = Math.floor((95 * 1e6) / 427);
    expect(edgePs).toBe(222_482);
    // The serialiser keeps fractions: the arrival is the next whole picosecond.
    expect(answer.timePs).toBe(222_482 + 3_056 + 125_000);
  });

  it('takes the id it was written to as its own, and completes with it', () => {
    const bench = functionBench();
    expect(bench.configRead(0x00, 4)!.completerId).toBe(0);
    bench.configWrite(0x3c, 1, 0x0b);
    expect(bench.fn.requesterId()).toBe(FUNCTION_ID);
    expect(bench.configRead(0x3c, 1)).toMatchObject({ bytes: [0x0b], completerId: FUNCTION_ID });
  });

  it('completes a configuration write without data', () => {
    const bench = functionBench();
    expect(bench.configWrite(0x04, 2, 0x0006)).toMatchObject({
      status: STATUS_SUCCESS,
      bytes: [],
      byteCount: 4,
    });
    expect(bench.fn.busMasterEnabled).toBe(true);
    expect(bench.fn.isBusMaster()).toBe(true);
  });

  it('hands BAR writes to the core with their bar, offset and bytes', () => {
    const bench = enabled();
    bench.write(BAR0 + 0x80680, [1, 2, 3, 4]);
    bench.write(BAR2 + 0x7f_fff8, [5, 6, 7, 8, 9, 10, 11, 12]);
    expect(bench.target.writes).toMatchObject([
      { bar: 0, offset: 0x80680, bytes: [1, 2, 3, 4] },
      { bar: 2, offset: 0x7f_fff8, bytes: [5, 6, 7, 8, 9, 10, 11, 12] },
    ]);
  });

  it('takes one write per cycle, or as slowly as the core says', () => {
    for (const occupiedCycles of [1, 7]) {
      const bench = enabled();
      bench.target.occupiedCycles = occupiedCycles;
      const bytes = Uint8Array.from({ length: 8 });
      // 12 + 4 header, 8 data, 8 framing: 32 B = 4,074 ps apart, more than one cycle of 2,342 ps, less than seven.
      for (let at = 0; at < 4; at++) bench.host.sendMemoryWrite(BAR2 + 8 * at, 0, bytes, 0, 8);
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
    const bench = enabled({ mmioReadCycles: 33 });
    const answer = bench.read(BAR0 + 0x80698, 4)!;
    expect(answer).toMatchObject({ status: STATUS_SUCCESS, bytes: [0xa8, 0xa9, 0xaa, 0xab], byteCount: 4 });
    const taken = bench.target.reads[0]!;
    expect(taken).toMatchObject({ bar: 0, offset: 0x80698 });
    const sentPs = Math.floor(((taken.cycle + 33) * 1e6) / 427);
    // 24 B completion: 3,055.1 ps, and the link's latency.
    expect(answer.timePs - sentPs).toBe(125_000 + 3_056);
  });

  it('answers a flush read of no bytes', () => {
    const bench = enabled();
    expect(bench.read(BAR0, 0)).toMatchObject({ status: STATUS_SUCCESS, byteCount: 1 });
    expect(bench.target.reads).toEqual([]);
  });

  it('lets writes pass reads that wait for their answer, but keeps their order of effect', () => {
    const bench = enabled({ mmioReadCycles: 1000 });
    bench.host.sendMemoryRead(BAR0 + 8, 12, 4, 200, 8);
    bench.host.sendMemoryWrite(BAR0 + 8, 12, Uint8Array.of(1, 2, 3, 4), 0, 4);
    bench.settle();
    expect(bench.target.writes[0]!.cycle - bench.target.reads[0]!.cycle).toBeLessThan(5);
    expect(bench.target.writes[0]!.cycle).toBeGreaterThan(bench.target.reads[0]!.cycle);
    expect(bench.answers.get(200)!.status).toBe(STATUS_SUCCESS);
  });

  it('gives all credits back', () => {
    const bench = enabled();
    for (let at = 0; at < 200; at++) bench.write(BAR0 + 4 * at, [1, 2, 3, 4]);
    for (let at = 0; at < 50; at++) bench.read(BAR0 + 4 * at, 4);
    bench.read(0x1234, 4);
    expect(bench.device.hasTransactionsPending).toBe(false);
    expect(bench.fn.completer.count).toBe(0);
    expect(bench.host.transmitter.waitingCount).toBe(0);
  });

  it('answers many reads in the order asked while the link has little room', () => {
    const bench = enabled(
      { mmioReadCycles: 3 },
      { endpoint: { completionFifoTlps: 1, transmitBufferTlps: 1 } },
    );
    for (let tag = 100; tag < 112; tag++) bench.host.sendMemoryRead(BAR0 + 4 * tag, 12, 64, tag, 8);
    bench.settle();
    const times = Array.from({ length: 12 }, (_, at) => bench.answers.get(100 + at)!.timePs);
    expect(times).toEqual([...times].sort((left, right) => left - right));
    expect(bench.fn.completer.account.stalledCycles[0]).toBeGreaterThan(0);
  });
});

describe('requests the function cannot take', () => {
  it('answers a read outside its BARs with Unsupported Request and logs its header', () => {
    const bench = enabled();
    // Advisory errors are masked at first, as in the standard: only the correctable bits are set.
    expect(bench.read(0x7_0000_1000, 4)).toMatchObject({ status: STATUS_UNSUPPORTED_REQUEST, bytes: [] });
    expect(bench.software.config(0x6a, 2)).toBe(0x0009);
    expect(bench.software.config(0x164)).toBe(0x2000);
    expect(bench.software.config(0x158)).toBe(0);
    bench.software.setConfig(0x168, 4, 0);
    bench.read(0x7_0000_1000, 4);
    expect(bench.software.config(0x158)).toBe(1 << 20);
    expect(bench.software.config(0x16c)).toBe(20);
    // MRd64, one dword; requester 0008, first byte enables f; address 7:00001000.
    expect(bench.software.config(0x170)).toBe(0x2000_0001);
    expect(bench.software.config(0x174) & 0xffff_00ff).toBe(0x0008_000f);
    expect(bench.software.config(0x178)).toBe(0x7);
    expect(bench.software.config(0x17c)).toBe(0x0000_1000);
    expect(bench.fn.counters.unsupportedRequests).toBe(2);
  });

  it('refuses register reads while memory space is disabled and in D3hot, but answers configuration reads', () => {
    const bench = enabled();
    bench.software.setConfig(0x04, 2, 0x0004);
    expect(bench.read(BAR0, 4)!.status).toBe(STATUS_UNSUPPORTED_REQUEST);
    bench.software.setConfig(0x04, 2, 0x0006);
    expect(bench.read(BAR0, 4)!.status).toBe(STATUS_SUCCESS);
    bench.software.setConfig(0x44, 2, 3);
    expect(bench.read(BAR0, 4)!.status).toBe(STATUS_UNSUPPORTED_REQUEST);
    expect(bench.fn.busMasterEnabled).toBe(false);
    bench.write(BAR0, [1, 2, 3, 4]);
    expect(bench.target.writes).toEqual([]);
    expect(bench.software.config(0x44, 2)).toBe(3);
  });

  it('drops a write outside its BARs and tells the root complex when that is enabled', () => {
    const bench = enabled();
    bench.write(0x7_0000_0000, [1, 2, 3, 4]);
    // Non-fatal error detected, unsupported request detected; nothing is sent.
    expect(bench.software.config(0x6a, 2)).toBe(0x000a);
    expect(bench.messages).toEqual([]);
    bench.software.setConfig(0x68, 2, 0x281a);
    bench.write(0x7_0000_0000, [1, 2, 3, 4]);
    // ERR_NONFATAL.
    expect(bench.messages).toEqual([0x31]);
  });

  it('needs the unsupported request enable, or SERR, before it reports one', () => {
    const bench = enabled();
    bench.software.setConfig(0x68, 2, 0x2812);
    bench.write(0x7_0000_0000, [1, 2, 3, 4]);
    expect(bench.messages).toEqual([]);
    bench.software.setConfig(0x04, 2, 0x0106);
    bench.write(0x7_0000_0000, [1, 2, 3, 4]);
    expect(bench.messages).toEqual([0x31]);
    // Signaled system error.
    expect(bench.software.config(0x06, 2) & 0x4000).toBe(0x4000);
  });

  it('aborts a read longer than its registers can answer', () => {
    const bench = enabled();
    bench.software.setConfig(0x168, 4, 0);
    expect(bench.read(BAR0, 64)!.status).toBe(STATUS_SUCCESS);
    expect(bench.read(BAR0, 65)!.status).toBe(STATUS_ABORT);
    // Signaled target abort; completer abort in AER.
    expect(bench.software.config(0x06, 2) & 0x0800).toBe(0x0800);
    expect(bench.software.config(0x158)).toBe(1 << 15);
    expect(bench.fn.counters.completerAborts).toBe(1);
  });

  it('drops a poisoned write, and says so', () => {
    const bench = enabled();
    bench.software.setConfig(0x68, 2, 0x2812);
    bench.write(BAR0, [1, 2, 3, 4], FLAG_POISONED);
    expect(bench.target.writes).toEqual([]);
    // Detected parity error.
    expect(bench.software.config(0x06, 2) & 0x8000).toBe(0x8000);
    expect(bench.software.config(0x158)).toBe(1 << 12);
    // MWr64 with EP (bit 14), one dword.
    expect(bench.software.config(0x170)).toBe(0x6000_4001);
    expect(bench.messages).toEqual([0x31]);
  });

  it('treats a write longer than its payload size, or across 4 KiB, as malformed and fatal', () => {
    const bench = enabled();
    bench.software.setConfig(0x68, 2, 0x2814);
    bench.write(BAR2, new Array(129).fill(0));
    expect(bench.software.config(0x158)).toBe(1 << 18);
    expect(bench.software.config(0x6a, 2)).toBe(0x0004);
    bench.write(BAR2 + 4092, [1, 2, 3, 4, 5, 6, 7, 8]);
    // ERR_FATAL, twice; only the first header is kept: 129 bytes are 33 dwords.
    expect(bench.messages).toEqual([0x33, 0x33]);
    expect(bench.software.config(0x170)).toBe(0x6000_0021);
    expect(bench.target.writes).toEqual([]);
    bench.software.setConfig(0x68, 2, 0x2834);
    bench.write(BAR2, new Array(129).fill(0));
    expect(bench.target.writes.length).toBe(1);
  });

  it('says in an error answer how many bytes are missing', () => {
    const bench = enabled();
    expect(bench.read(0x1000, 64)).toMatchObject({ status: STATUS_UNSUPPORTED_REQUEST, byteCount: 64 });
  });

  it('does not carry out a poisoned configuration write', () => {
    const bench = enabled();
    bench.host.sendConfigWrite(FUNCTION_ID, 0x3c, 1, 0x5a, 13, 77, 8, FLAG_POISONED);
    bench.settle();
    expect(bench.answers.get(77)!.status).toBe(STATUS_UNSUPPORTED_REQUEST);
    expect(bench.software.config(0x3c, 1)).toBe(0);
    expect(bench.software.config(0x158)).toBe(1 << 12);
  });

  it('does not answer a malformed read', () => {
    const bench = enabled();
    expect(bench.read(BAR0 + 4094, 4)).toBeUndefined();
    expect(bench.fn.counters.malformedRequests).toBe(1);
    expect(bench.read(BAR0, 4)!.status).toBe(STATUS_SUCCESS);
  });

  it('answers for function 0 only', () => {
    const bench = functionBench();
    expect(bench.configRead(0, 4, FUNCTION_ID + 1)!.status).toBe(STATUS_UNSUPPORTED_REQUEST);
    expect(bench.configRead(0, 4, FUNCTION_ID + 8)!.status).toBe(STATUS_SUCCESS);
  });

  it('takes messages silently', () => {
    const bench = functionBench();
    bench.host.sendMessage(0x50, 14, 8);
    bench.settle();
    expect(bench.fn.counters.messages).toBe(1);
    expect(bench.software.config(0x6a, 2)).toBe(0);
  });
});

describe('completions of the device', () => {
  it('go to the listener at the instant of their arrival', () => {
    const bench = enabled();
    const arrived: number[] = [];
    bench.fn.onCompletion((offset) => {
      arrived.push(bench.deviceLp.nowPs);
      bench.fn.reportUnexpectedCompletion(offset);
      bench.devicePort.consume(offset);
    });
    bench.software.setConfig(0x168, 4, 0);
    const startPs = bench.hostLp.nowPs;
    bench.host.sendCompletionData(3, FUNCTION_ID, 4, Uint8Array.of(1, 2, 3, 4), 0, 4, 4, 0);
    bench.settle();
    expect(arrived.length).toBe(1);
    expect(arrived[0]! - startPs).toBeGreaterThan(125_000);
    // Unexpected completion, advisory: logged as correctable.
    expect(bench.software.config(0x158)).toBe(1 << 16);
    expect(bench.software.config(0x6a, 2)).toBe(0x0001);
    // CplD of one dword.
    expect(bench.software.config(0x170)).toBe(0x4a00_0001);
  });

  it('set the abort bits and the parity bits of Status', () => {
    const bench = enabled();
    bench.software.setConfig(0x04, 2, 0x0046);
    bench.host.sendCompletion(1, FUNCTION_ID, 4, STATUS_UNSUPPORTED_REQUEST);
    bench.settle();
    expect(bench.software.config(0x06, 2)).toBe(0x2010);
    bench.host.sendCompletion(1, FUNCTION_ID, 4, STATUS_ABORT);
    bench.settle();
    expect(bench.software.config(0x06, 2)).toBe(0x3010);
    bench.host.sendCompletionData(1, FUNCTION_ID, 4, new Uint8Array(4), 0, 4, 4, 0, FLAG_POISONED);
    bench.settle();
    expect(bench.software.config(0x06, 2)).toBe(0xb110);
    expect(bench.software.config(0x158)).toBe(1 << 12);
    bench.software.setConfig(0x06, 2, 0xf900);
    expect(bench.software.config(0x06, 2)).toBe(0x0010);
  });

  it('that nobody waits for are given back and logged', () => {
    const bench = enabled();
    bench.host.sendCompletionData(3, FUNCTION_ID, 4, new Uint8Array(64), 0, 64, 64, 0);
    bench.settle();
    expect(bench.fn.errors.uncorrectableCounts[16]).toBe(1);
    expect(bench.devicePort.receiver.heldCount).toBe(0);
  });

  it('that never come are a non-fatal completion timeout', () => {
    const bench = enabled();
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

  it('are pending in Device Status while the device says so', () => {
    const bench = functionBench();
    bench.device.hasTransactionsPending = true;
    expect(bench.software.config(0x6a, 2)).toBe(0x0020);
    bench.device.hasTransactionsPending = false;
    expect(bench.software.config(0x6a, 2)).toBe(0);
  });
});

describe('error logging', () => {
  it('sends ERR_COR for advisory errors when both masks allow it', () => {
    const bench = enabled();
    bench.software.setConfig(0x168, 4, 0);
    bench.software.setConfig(0x68, 2, 0x2819);
    bench.read(0x1000, 4);
    expect(bench.messages).toEqual([0x30]);
    bench.software.setConfig(0x68, 2, 0x2811);
    bench.read(0x1000, 4);
    expect(bench.messages).toEqual([0x30]);
  });

  it('reports an advisory error as fatal when software made it so', () => {
    const bench = enabled();
    bench.software.setConfig(0x68, 2, 0x281c);
    bench.software.setConfig(0x160, 4, 0x0016_2010);
    bench.read(0x1000, 4);
    expect(bench.messages).toEqual([0x33]);
    // Fatal error and unsupported request detected, no correctable error.
    expect(bench.software.config(0x6a, 2)).toBe(0x000c);
  });

  it('keeps a masked error out of the log and off the link', () => {
    const bench = enabled();
    bench.software.setConfig(0x68, 2, 0x281a);
    bench.software.setConfig(0x15c, 4, 1 << 20);
    bench.write(0x1000, [1, 2, 3, 4]);
    expect(bench.software.config(0x158)).toBe(1 << 20);
    expect(bench.software.config(0x170)).toBe(0);
    expect(bench.messages).toEqual([]);
  });

  it('keeps the first header until software clears its status bit', () => {
    const bench = enabled();
    bench.write(0x1000, [1, 2, 3, 4]);
    bench.write(0x2000, [1, 2, 3, 4], FLAG_POISONED);
    bench.write(BAR0, [1, 2, 3, 4], FLAG_POISONED);
    expect(bench.software.config(0x178)).toBe(0x1000);
    expect(bench.software.config(0x16c)).toBe(20);
    bench.software.setConfig(0x158, 4, 0xffff_ffff);
    expect(bench.software.config(0x158)).toBe(0);
    bench.write(0x3000, [1, 2, 3, 4]);
    expect(bench.software.config(0x178)).toBe(0x3000);
  });

  it('drops error messages beyond its bound while the link is closed', () => {
    const bench = enabled(
      {},
      { rootPort: { postedHeaders: 1, postedFifoTlps: 64 }, endpoint: { postedFifoTlps: 1 } },
    );
    bench.software.setConfig(0x68, 2, 0x281a);
    for (let at = 0; at < 40; at++) bench.host.sendMemoryWrite(0x1000, 12, new Uint8Array(4), 0, 4);
    bench.settle();
    expect(bench.messages.length + bench.fn.outbox.droppedCount).toBe(40);
    expect(bench.messages.length).toBeGreaterThan(0);
  });
});

describe('resets', () => {
  it('function-level: answers the write, then nothing of before is left', () => {
    const bench = enabled();
    bench.software.setConfig(0x9e, 2, 0x8000);
    bench.software.setRegister(BAR0 + 0x7c000, 0xfee0_0000);
    bench.fn.requestInterrupt(0, bench.cycleNow());
    bench.fn.setIntx(true, bench.cycleNow());
    expect(bench.fn.msix.isPending(0)).toBe(true);
    expect(bench.configWrite(0x68, 2, 0x8000 | 0x2830)!.status).toBe(STATUS_SUCCESS);
    expect(bench.target.resetCycles.length).toBe(1);
    expect(bench.fn.busMasterEnabled).toBe(false);
    expect(bench.fn.msix.pendingCount).toBe(0);
    expect(bench.software.config(0x04)).toBe(0x0010_0000);
    expect(bench.software.config(0x10)).toBe(0x4);
    expect(bench.software.config(0x9e, 2)).toBe(127);
    // The initiate bit reads 0; the payload size written with it stays.
    expect(bench.software.config(0x68, 2)).toBe(0x2830);
    expect(bench.read(BAR0, 4)!.status).toBe(STATUS_UNSUPPORTED_REQUEST);
    bench.software.enable();
    // Table as after power-on: zero, masked.
    expect([0, 4, 8, 12].map((at) => bench.software.register(BAR0 + 0x7c000 + at))).toEqual([0, 0, 0, 1]);
    expect(bench.software.register(BAR0 + 0x7d000)).toBe(0);
    expect(bench.sender.messages).toEqual([]);
  });

  it('take no request for resetCycles', () => {
    const bench = enabled({ resetCycles: 500 });
    bench.host.sendConfigWrite(FUNCTION_ID, 0x68, 2, 0x8000, 13, 201, 8);
    bench.host.sendConfigRead(FUNCTION_ID, 0x00, 4, 13, 202, 8);
    bench.settle();
    const apartPs = bench.answers.get(202)!.timePs - bench.answers.get(201)!.timePs;
    // 500 cycles of 2,341.92 ps = 1,170,960 ps, and at most a cycle and the difference of the two completions.
    expect(apartPs).toBeGreaterThan(1_168_000);
    expect(apartPs).toBeLessThan(1_175_000);
  });

  it('by the device in the middle of a write are like a function-level reset', () => {
    const bench = enabled();
    bench.target.onWrite = (cycle) => bench.fn.reset('functionLevel', cycle);
    bench.write(BAR0 + 0xf0010, [1, 0, 0, 1]);
    expect(bench.target.resetCycles).toEqual([bench.target.writes[0]!.cycle]);
    expect(bench.software.config(0x00, 2)).toBe(0x15b3);
    expect(bench.software.config(0x04, 2)).toBe(0);
  });

  it('of the link forget everything, sticky bits too, and hold the function until released', () => {
    const bench = enabled();
    bench.write(0x1000, [1, 2, 3, 4]);
    expect(bench.software.config(0x158)).not.toBe(0);
    bench.host.sendSideband(SIDEBAND_RESET, 1);
    bench.host.sendConfigRead(FUNCTION_ID, 0, 4, 13, 203, 8);
    bench.host.sendMemoryWrite(BAR0, 12, new Uint8Array(4), 0, 4);
    bench.settle();
    expect(bench.answers.has(203)).toBe(false);
    expect(bench.target.writes).toEqual([]);
    bench.host.sendSideband(SIDEBAND_RESET, 0);
    expect(bench.software.config(0x158)).toBe(0);
    expect(bench.fn.requesterId()).toBe(0);
    expect(bench.devicePort.receiver.heldCount).toBe(0);
  });

  it('of the link drop the answers that wait, give their requests back, and lower INTx without a message', () => {
    const bench = enabled({ mmioReadCycles: 1000 });
    bench.fn.setIntx(true, bench.cycleNow());
    bench.settle();
    bench.host.sendMemoryRead(BAR0, 12, 4, 204, 8);
    bench.host.sendSideband(SIDEBAND_RESET, 1);
    bench.settle();
    expect(bench.answers.has(204)).toBe(false);
    expect(bench.devicePort.receiver.heldCount).toBe(0);
    bench.host.sendSideband(SIDEBAND_RESET, 0);
    bench.settle();
    expect(bench.messages).toEqual([0x20]);
    bench.fn.setIntx(true, bench.cycleNow());
    bench.settle();
    expect(bench.messages).toEqual([0x20, 0x20]);
  });

  it('forget errors that were just seen and messages not yet sent', () => {
    const bench = enabled();
    bench.fn.reportCompletionTimeout();
    bench.fn.outbox.addError(0x31);
    bench.fn.reset('functionLevel', bench.cycleNow());
    bench.settle();
    expect(bench.messages).toEqual([]);
    expect(bench.software.config(0x158)).toBe(0);
  });

  it('happen when software wakes the function from D3hot', () => {
    const bench = enabled();
    bench.software.setConfig(0x44, 2, 3);
    bench.software.setConfig(0x44, 2, 0);
    expect(bench.target.resetCycles.length).toBe(1);
    expect(bench.software.config(0x04, 2)).toBe(0);
    expect(bench.software.config(0x44, 2)).toBe(0);
  });
});

describe('the register image', () => {
  it('shows the MSI-X table in shared memory, and refuses offsets outside', () => {
    const bench = enabled();
    bench.software.setRegister(BAR0 + 0x7c008, 0x1234_5678);
    expect(bench.fn.bars.readRegister(0x7c008)).toBe(0x1234_5678);
    expect(new Uint8Array(bench.fn.bars.registerImage)[0x7c008]).toBe(0x78);
    expect(() => bench.fn.bars.readRegister(0x10_0000)).toThrow(/register offset/);
    expect(() => bench.fn.bars.readRegister(2)).toThrow(/register offset/);
  });
});

describe('events of one instant', () => {
  it('may be reshuffled without any effect', () => {
    const runOnce = (seed: number) => {
      let state = seed;
      const shuffle = () => {
        state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
        return state / 2_147_483_648;
      };
      const bench = enabled(
        {},
        { shuffle, rootPort: { postedFifoTlps: 32, nonPostedFifoTlps: 32, completionFifoTlps: 32 } },
      );
      for (let at = 0; at < 20; at++) {
        bench.host.sendMemoryWrite(BAR0 + 8 * at, 12, new Uint8Array(8), 0, 8);
        bench.host.sendMemoryRead(BAR0 + 8 * at, 12, 8, at, 8);
        bench.host.sendCompletion(at, FUNCTION_ID, 4, STATUS_UNSUPPORTED_REQUEST);
      }
      bench.settle();
      return JSON.stringify([bench.target.writes, bench.target.reads, [...bench.answers]]);
    };
    expect(new Set([1, 2, 3, 4, 5].map(runOnce)).size).toBe(1);
  });
});
