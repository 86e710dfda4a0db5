import { describe, expect, it } from 'vitest';
import { memoryWrite } from '../link/link-bench.ts';
import { FLAG_POISONED, STATUS_ABORT, STATUS_SUCCESS, STATUS_UNSUPPORTED_REQUEST } from '../tlp/tlp.ts';
import { BAR0, BAR2, configRequest, enabledBench, FUNCTION_ID, functionBench } from './function-bench.ts';

describe('requests that the function cannot accept', () => {
  it('PCIe 2.3.1: answers a read outside its BARs with Unsupported Request and logs its header', () => {
    const bench = enabledBench();
    // Advisory errors are initially masked, as in the standard: only the correctable bits are set.
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

  it('PCIe 2.3.1: rejects register reads while memory space is disabled and in D3hot, but answers configuration reads', () => {
    const bench = enabledBench();
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

  it('PCIe 2.3.1: drops a write outside its BARs and reports it to the root complex when that is enabled', () => {
    const bench = enabledBench();
    bench.write(0x7_0000_0000, [1, 2, 3, 4]);
    // Non-fatal error detected, unsupported request detected; nothing is sent.
    expect(bench.software.config(0x6a, 2)).toBe(0x000a);
    expect(bench.messages).toEqual([]);
    bench.software.setConfig(0x68, 2, 0x281a);
    bench.write(0x7_0000_0000, [1, 2, 3, 4]);
    // ERR_NONFATAL.
    expect(bench.messages).toEqual([0x31]);
  });

  it('PCIe 6.2.6: reports one only with the unsupported request enable, or SERR', () => {
    const bench = enabledBench();
    bench.software.setConfig(0x68, 2, 0x2812);
    bench.write(0x7_0000_0000, [1, 2, 3, 4]);
    expect(bench.messages).toEqual([]);
    bench.software.setConfig(0x04, 2, 0x0106);
    bench.write(0x7_0000_0000, [1, 2, 3, 4]);
    expect(bench.messages).toEqual([0x31]);
    // Signaled system error.
    expect(bench.software.config(0x06, 2) & 0x4000).toBe(0x4000);
  });

  it('PCIe 2.3.1: aborts a read longer than its registers can answer', () => {
    const bench = enabledBench();
    bench.software.setConfig(0x168, 4, 0);
    expect(bench.read(BAR0, 64)!.status).toBe(STATUS_SUCCESS);
    expect(bench.read(BAR0, 65)!.status).toBe(STATUS_ABORT);
    // Signaled target abort; completer abort in AER.
    expect(bench.software.config(0x06, 2) & 0x0800).toBe(0x0800);
    expect(bench.software.config(0x158)).toBe(1 << 15);
    expect(bench.fn.counters.completerAborts).toBe(1);
  });

  it('PCIe 2.7.2: drops a poisoned write, and reports it', () => {
    const bench = enabledBench();
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

  it('PCIe 2.2.2, 2.2.7: treats a write longer than its payload size, or across 4 KiB, as malformed and fatal', () => {
    const bench = enabledBench();
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

  it('PCIe 6.2.3.2.3: reports, of several errors of one TLP, the one of highest precedence, once', () => {
    // Malformed TLP, unsupported request, poisoned TLP.
    const [malformed, unsupported, poisoned] = [1 << 18, 1 << 20, 1 << 12];
    const cases: [number, number, number][] = [
      [BAR0 + 4094, 4, malformed],
      [0x7_0000_0ffe, 4, malformed],
      [BAR0, 256, malformed],
      [0x7_0000_0000, 4, unsupported],
      [BAR0, 4, poisoned],
    ];
    for (const [address, bytes, only] of cases) {
      const bench = enabledBench();
      bench.software.setConfig(0x68, 2, 0x281e);
      bench.write(address, new Array(bytes).fill(0), FLAG_POISONED);
      expect(bench.software.config(0x158)).toBe(only);
      expect(bench.messages).toEqual([only === malformed ? 0x33 : 0x31]);
      // Detected parity error.
      expect((bench.software.config(0x06, 2) & 0x8000) !== 0).toBe(only === poisoned);
      expect(bench.target.writes).toEqual([]);
    }
  });

  it('PCIe 2.2.9: gives in an error answer the number of missing bytes', () => {
    const bench = enabledBench();
    expect(bench.read(0x1000, 64)).toMatchObject({ status: STATUS_UNSUPPORTED_REQUEST, byteCount: 64 });
  });

  it('PCIe 2.7.2: does not carry out a poisoned configuration write', () => {
    const bench = enabledBench();
    const request = { ...configRequest(77), register: 0x3c, lengthBytes: 1 };
    bench.host.sendConfigWrite({ ...request, value: 0x5a, flags: FLAG_POISONED });
    bench.settle();
    expect(bench.answers.get(77)!.status).toBe(STATUS_UNSUPPORTED_REQUEST);
    expect(bench.software.config(0x3c, 1)).toBe(0);
    expect(bench.software.config(0x158)).toBe(1 << 12);
  });

  it('PCIe 2.3.1: does not answer a malformed read', () => {
    const bench = enabledBench();
    expect(bench.read(BAR0 + 4094, 4)).toBeUndefined();
    expect(bench.fn.counters.malformedRequests).toBe(1);
    expect(bench.read(BAR0, 4)!.status).toBe(STATUS_SUCCESS);
  });

  it('answers for function 0 only', () => {
    const bench = functionBench();
    expect(bench.configRead(0, 4, FUNCTION_ID + 1)!.status).toBe(STATUS_UNSUPPORTED_REQUEST);
    expect(bench.configRead(0, 4, FUNCTION_ID + 8)!.status).toBe(STATUS_SUCCESS);
  });

  it('accepts messages silently', () => {
    const bench = functionBench();
    bench.host.sendMessage(0x50, 14, 8);
    bench.settle();
    expect(bench.fn.counters.messages).toBe(1);
    expect(bench.software.config(0x6a, 2)).toBe(0);
  });
});

describe('error logging', () => {
  it('PCIe 6.2.3.2.4: sends ERR_COR for advisory errors when both masks allow it', () => {
    const bench = enabledBench();
    bench.software.setConfig(0x168, 4, 0);
    bench.software.setConfig(0x68, 2, 0x2819);
    bench.read(0x1000, 4);
    expect(bench.messages).toEqual([0x30]);
    bench.software.setConfig(0x68, 2, 0x2811);
    bench.read(0x1000, 4);
    expect(bench.messages).toEqual([0x30]);
  });

  it('PCIe 6.2.3.2.4: reports an advisory error as fatal when software made it so', () => {
    const bench = enabledBench();
    bench.software.setConfig(0x68, 2, 0x281c);
    bench.software.setConfig(0x160, 4, 0x0016_2010);
    bench.read(0x1000, 4);
    expect(bench.messages).toEqual([0x33]);
    // Fatal error and unsupported request detected, no correctable error.
    expect(bench.software.config(0x6a, 2)).toBe(0x000c);
  });

  it('PCIe 6.2.3.2.2: keeps a masked error out of the log and off the link', () => {
    const bench = enabledBench();
    bench.software.setConfig(0x68, 2, 0x281a);
    bench.software.setConfig(0x15c, 4, 1 << 20);
    bench.write(0x1000, [1, 2, 3, 4]);
    expect(bench.software.config(0x158)).toBe(1 << 20);
    expect(bench.software.config(0x170)).toBe(0);
    expect(bench.messages).toEqual([]);
  });

  it('PCIe 6.2.4.2: keeps the first header until software clears its status bit', () => {
    const bench = enabledBench();
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

  it('drops error messages beyond its limit while the link is closed', () => {
    const bench = enabledBench(
      {},
      { rootPort: { postedHeaders: 1, postedFifoTlps: 64 }, endpoint: { postedFifoTlps: 1 } },
    );
    bench.software.setConfig(0x68, 2, 0x281a);
    for (let at = 0; at < 40; at++)
      memoryWrite(bench.host, {
        address: 0x1000,
        trafficClass: 12,
        source: new Uint8Array(4),
        lengthBytes: 4,
      });
    bench.settle();
    expect(bench.messages.length + bench.fn.blocks.outbox.droppedCount).toBe(40);
    expect(bench.messages.length).toBeGreaterThan(0);
  });
});
