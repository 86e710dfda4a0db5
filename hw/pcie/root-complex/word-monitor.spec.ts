import { describe, expect, it } from 'vitest';
import { psPerMs, psPerUs } from '../../../base/units.ts';
import { SIDEBAND_WORD_CHANGED } from '../tlp/index.ts';
import { rootComplexBench } from './root-complex-bench.ts';
import type { HostMemory } from './root-complex-interfaces.ts';

const ADDRESS = 0x1_2340;
const BEFORE = 0x0001_0002;

function benchWith(isSeen: boolean) {
  const bench = rootComplexBench({
    memoryOf: (memory): HostMemory => {
      if (isSeen) return memory;
      const { sizeBytes } = memory;
      return {
        sizeBytes,
        readInto: memory.readInto.bind(memory),
        write: memory.write.bind(memory),
      };
    },
  });
  const view = new DataView(bench.memory.bytes.buffer);
  let nowPs = 0;
  return {
    ...bench,
    reports: () => bench.atDevice.filter(({ kind }) => kind === SIDEBAND_WORD_CHANGED).length,
    store: (address: number, value: number) => {
      view.setUint32(address, value);
      bench.memory.written(address);
    },
    runFor: (ps: number) => {
      nowPs += ps;
      bench.run(nowPs);
    },
  };
}

describe('a monitored word', () => {
  for (const [where, isSeen, latencyPs] of [
    ['whose writes are seen', true, 2 * psPerUs],
    ['of a guest', false, 1.1 * psPerMs],
  ] as const) {
    it(`${where}: is reported once when it differs, and not for its neighbours`, () => {
      const { device, rootComplex, reports, store, runFor } = benchWith(isSeen);
      store(ADDRESS, BEFORE);
      device.monitor(7, ADDRESS, BEFORE);
      runFor(10 * psPerMs);
      store(ADDRESS + 4, 5);
      store(ADDRESS - 4, 5);
      runFor(latencyPs);
      expect(reports()).toBe(0);
      store(ADDRESS, BEFORE + 1);
      runFor(latencyPs);
      expect(reports()).toBe(1);
      store(ADDRESS, BEFORE + 2);
      runFor(10 * psPerMs);
      expect(reports()).toBe(1);
      expect(rootComplex.blocks.monitor.heldCount).toBe(0);
    });

    it(`${where}: is reported when it changed before the monitor began`, () => {
      const { device, reports, store, runFor } = benchWith(isSeen);
      store(ADDRESS, BEFORE + 1);
      device.monitor(7, ADDRESS, BEFORE);
      runFor(2 * psPerUs);
      expect(reports()).toBe(1);
    });

    it(`${where}: is no longer monitored after that has ended, or another has taken its number`, () => {
      const { device, memory, rootComplex, reports, store, runFor } = benchWith(isSeen);
      const { monitor } = rootComplex.blocks;
      for (const number of [1, 2]) device.monitor(number, ADDRESS, 0);
      device.monitor(1, ADDRESS + 0x1000, 0);
      runFor(2 * psPerUs);
      expect(monitor.heldCount).toBe(2);
      device.endMonitor(2);
      runFor(2 * psPerUs);
      store(ADDRESS, 9);
      runFor(latencyPs);
      expect([reports(), monitor.heldCount]).toEqual([0, 1]);
      rootComplex.setReset(true);
      expect([memory.watchedPages.length, monitor.heldCount]).toEqual([0, 0]);
      store(ADDRESS + 0x1000, 9);
      runFor(latencyPs);
      expect(reports()).toBe(0);
    });
  }

  it('keeps no process running if writes are visible, and none after the last monitor ends', () => {
    for (const isSeen of [true, false]) {
      const { device, hostLp, deviceLp, runFor } = benchWith(isSeen);
      device.monitor(7, ADDRESS, 0);
      runFor(5 * psPerMs);
      const isIdle = hostLp.queue.nextPs === Number.POSITIVE_INFINITY;
      expect([isIdle, deviceLp.queue.nextPs]).toEqual([isSeen, Number.POSITIVE_INFINITY]);
      device.endMonitor(7);
      runFor(5 * psPerMs);
      expect(hostLp.queue.nextPs).toBe(Number.POSITIVE_INFINITY);
    }
  });

  it('is not reported where memory cannot be read', () => {
    const { device, reports, runFor } = benchWith(true);
    device.monitor(7, 2 ** 40, 5);
    runFor(5 * psPerMs);
    expect(reports()).toBe(0);
  });
});
