import { describe, expect, it } from 'vitest';
import { memoryRead, memoryWrite } from '../link/link-bench.ts';
import { SIDEBAND_RESET, STATUS_SUCCESS, STATUS_UNSUPPORTED_REQUEST } from '../tlp/tlp.ts';
import { BAR0, configRequest, enabledBench } from './function-bench.ts';

describe('resets', () => {
  it('PCIe 6.6.2: function-level, answer the write, then clear all earlier state', () => {
    const bench = enabledBench();
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
    // The initiate bit reads 0; the payload size written with it is kept.
    expect(bench.software.config(0x68, 2)).toBe(0x2830);
    expect(bench.read(BAR0, 4)!.status).toBe(STATUS_UNSUPPORTED_REQUEST);
    bench.software.enable();
    // Table as after power-on: zero, masked.
    expect([0, 4, 8, 12].map((at) => bench.software.register(BAR0 + 0x7c000 + at))).toEqual([0, 0, 0, 1]);
    expect(bench.software.register(BAR0 + 0x7d000)).toBe(0);
    expect(bench.sender.messages).toEqual([]);
  });

  it('accept no request for resetCycles', () => {
    const bench = enabledBench({ resetCycles: 500 });
    bench.host.sendConfigWrite({ ...configRequest(201), register: 0x68, lengthBytes: 2, value: 0x8000 });
    bench.host.sendConfigRead(configRequest(202));
    bench.settle();
    const apartPs = bench.answers.get(202)!.timePs - bench.answers.get(201)!.timePs;
    // 500 cycles of 2,341.92 ps = 1,170,960 ps, plus at most a cycle and the difference of the two completions.
    expect(apartPs).toBeGreaterThan(1_168_000);
    expect(apartPs).toBeLessThan(1_175_000);
  });

  it('end the request in progress, and its cycles with it', () => {
    const bench = enabledBench({ resetCycles: 100 });
    bench.target.occupiedCycles = 1000;
    const { account } = bench.fn.blocks.ingress;
    bench.write(BAR0, [1, 2, 3, 4]);
    const begunCycle = bench.target.writes[0]!.cycle;
    const before = account.closedAt(begunCycle).busyCycles;
    bench.fn.setPresent(false, begunCycle + 10);
    bench.fn.setPresent(true, begunCycle + 10);
    expect(bench.configRead(0x00, 2)!.status).toBe(STATUS_SUCCESS);
    // Ten cycles of the write, one of the read.
    const endCycle = bench.cycleNow();
    const { busyCycles, idleCycles, overlapCount } = account.closedAt(endCycle);
    expect([busyCycles - before, busyCycles + idleCycles, overlapCount]).toEqual([11, endCycle, 0]);
  });

  it('by the device in the middle of a write are like a function-level reset', () => {
    const bench = enabledBench();
    bench.target.onWrite = (cycle) => bench.fn.reset('functionLevel', cycle);
    bench.write(BAR0 + 0xf0010, [1, 0, 0, 1]);
    expect(bench.target.resetCycles).toEqual([bench.target.writes[0]!.cycle]);
    expect(bench.software.config(0x00, 2)).toBe(0x15b3);
    expect(bench.software.config(0x04, 2)).toBe(0);
  });

  it('PCIe 6.6: of the link clear everything, including sticky bits, and hold the function until released', () => {
    const bench = enabledBench();
    bench.write(0x1000, [1, 2, 3, 4]);
    expect(bench.software.config(0x158)).not.toBe(0);
    bench.host.sendSideband(SIDEBAND_RESET, 1);
    bench.host.sendConfigRead(configRequest(203));
    memoryWrite(bench.host, { address: BAR0, trafficClass: 12, source: new Uint8Array(4), lengthBytes: 4 });
    bench.settle();
    expect(bench.answers.has(203)).toBe(false);
    expect(bench.target.writes).toEqual([]);
    bench.host.sendSideband(SIDEBAND_RESET, 0);
    expect(bench.software.config(0x158)).toBe(0);
    expect(bench.fn.requesterId()).toBe(0);
    expect(bench.devicePort.receiver.heldCount).toBe(0);
  });

  it('of the link drop waiting answers, release their requests, and lower INTx without a message', () => {
    const bench = enabledBench({ mmioReadCycles: 1000 });
    bench.fn.setIntx(true, bench.cycleNow());
    bench.settle();
    memoryRead(bench.host, { address: BAR0, trafficClass: 12, lengthBytes: 4, tag: 204, requesterId: 8 });
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

  it('drop errors that were just seen and unsent messages', () => {
    const bench = enabledBench();
    bench.target.onWrite = (cycle) => {
      bench.fn.reportCompletionTimeout();
      bench.fn.blocks.outbox.addError(0x31);
      bench.fn.reset('functionLevel', cycle);
    };
    memoryWrite(bench.host, {
      address: BAR0,
      trafficClass: 12,
      source: new Uint8Array(4),
      lengthBytes: 4,
    });
    bench.settle();
    expect(bench.target.resetCycles.length).toBe(1);
    expect(bench.messages).toEqual([]);
    expect(bench.software.config(0x158)).toBe(0);
  });

  it('PCI Bus Power Management Interface Specification 1.2: happen when software wakes the function from D3hot', () => {
    const bench = enabledBench();
    bench.software.setConfig(0x44, 2, 3);
    bench.software.setConfig(0x44, 2, 0);
    expect(bench.target.resetCycles.length).toBe(1);
    expect(bench.software.config(0x04, 2)).toBe(0);
    expect(bench.software.config(0x44, 2)).toBe(0);
  });
});
