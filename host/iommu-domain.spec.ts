import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../base/parameter.ts';
import { Iommu, iommuParameters } from '../hw/iommu/index.ts';
import { IommuDomain } from './iommu-domain.ts';
import { newTestMemory } from './mm/testing.ts';

function newDomain() {
  const all = newTestMemory();
  const config = defaultsOf(iommuParameters);
  const iommu = new Iommu({ lp: { instantPs: 0 }, memory: all.memory, config });
  iommu.connect({ processor: { faultRecorded: () => {} } });
  return { ...all, iommu, domain: new IommuDomain(iommu, all.mm, config) };
}

describe('the domain of a device', () => {
  it('lets the device reach mapped pages at their addresses, and nothing else', () => {
    const { iommu, domain, memory } = newDomain();
    expect(iommu.canRead(0x20_0000, 8)).toBe(false);
    domain.map(0x20_0010, true);
    expect(iommu.write(0x20_0ff8, 8, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8), 0)).toBe(true);
    expect(memory.bytes[0x20_0ff9]).toBe(2);
    expect(iommu.canRead(0x20_1000, 8)).toBe(false);
    expect(domain.mappedPages).toBe(1);
  });

  it('keeps a page while any mapping of it exists, with the rights that the remaining ones need', () => {
    const { iommu, domain } = newDomain();
    const bytes = new Uint8Array(8);
    domain.map(0x20_0000, false);
    expect([iommu.canRead(0x20_0000, 8), iommu.write(0x20_0000, 8, bytes, 0)]).toEqual([true, false]);
    domain.map(0x20_0000, true);
    expect(iommu.write(0x20_0000, 8, bytes, 0)).toBe(true);
    domain.unmap([0x20_0000], true);
    expect([iommu.canRead(0x20_0000, 8), iommu.write(0x20_0000, 8, bytes, 0)]).toEqual([true, false]);
    domain.unmap([0x20_0000], false);
    expect([iommu.canRead(0x20_0000, 8), domain.mappedPages]).toEqual([false, 0]);
    expect(() => domain.unmap([0x20_0000], false)).toThrow(/device page/);
  });

  it('waits once for the invalidations of one call, and not at all if nothing becomes unreachable', () => {
    const { domain, platform, iommu } = newDomain();
    for (const page of [0, 1, 2]) domain.map(0x20_0000 + page * 4096, true);
    domain.map(0x20_0000, true);
    domain.unmap([0x20_0000], true);
    expect([platform.nowPs, iommu.invalidationCount]).toEqual([0, 0]);
    domain.unmap([0x20_0000, 0x20_1000, 0x20_2000], true);
    expect([platform.nowPs, iommu.invalidationCount]).toEqual([1_000_000, 3]);
  });

  it('reads the faults from the log', () => {
    const { domain, iommu } = newDomain();
    iommu.canRead(0x30_0000, 8);
    domain.takeFaults();
    expect([domain.faults, iommu.blocks.faultLog.faults]).toEqual([
      [{ address: 0x30_0000, reason: 'notPresent', atPs: 0 }],
      [],
    ]);
  });
});
