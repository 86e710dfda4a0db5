import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../../base/parameter.ts';
import { FUNCTION_ID, functionBench } from '../function/function-bench.ts';
import { STATUS_SUCCESS } from '../tlp/tlp.ts';
import { type ConfigAccess, enumerateFunction, enumerationParameters } from './enumerate.ts';

const config = defaultsOf(enumerationParameters);

describe('enumeration', () => {
  it('PCI Local Bus 6.2.5.1: finds the function, assigns its BARs and reports its identity', async () => {
    const bench = functionBench();
    const found = await enumerateFunction(bench.access, FUNCTION_ID, config, 'memoryAndBusMaster');
    expect(found).toMatchObject({
      functionId: 0x0100,
      vendorId: 0x15b3,
      deviceId: 0x1003,
      classCode: 0x028000,
      subsystemVendorId: 0x15b3,
      subsystemId: 0x0050,
      interruptPin: 1,
      maxPayloadBytes: 256,
      maxReadRequestBytes: 512,
      linkGeneration: 3,
      linkLanes: 8,
    });
    expect(found!.capabilities.map(({ id, offset }) => [id, offset])).toEqual([
      [0x01, 0x40],
      [0x03, 0x48],
      [0x10, 0x60],
      [0x11, 0x9c],
      [0x09, 0xc0],
    ]);
    expect(found!.extendedCapabilities.map(({ id, offset }) => [id, offset])).toEqual([
      [0x000e, 0x100],
      [0x0003, 0x148],
      [0x0001, 0x154],
    ]);
    // The larger BAR first: 8 MiB at 32 GiB, then 1 MiB.
    expect(found!.bars.map(({ address, sizeBytes }) => [address, sizeBytes])).toEqual([
      [0x8_0080_0000, 0x10_0000],
      [0, 0],
      [0x8_0000_0000, 0x80_0000],
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
    expect(found!.bars[2]).toMatchObject({ is64Bit: true, isPrefetchable: true, isIo: false });
    expect(found!.bars[0]).toMatchObject({ is64Bit: true, isPrefetchable: false });
  });

  it('leaves a function that answers at its assigned addresses', async () => {
    const bench = functionBench();
    const found = await enumerateFunction(bench.access, FUNCTION_ID, config, 'memoryAndBusMaster');
    expect(bench.read(found!.bars[0]!.address + 0x80698, 4)!.status).toBe(STATUS_SUCCESS);
    bench.write(found!.bars[2]!.address + 0x18, [1, 2, 3, 4, 5, 6, 7, 8]);
    expect(bench.target.writes).toMatchObject([{ bar: 2, offset: 0x18 }]);
    expect(bench.fn.maxPayloadBytes()).toBe(256);
    expect(bench.fn.maxReadRequestBytes()).toBe(512);
    expect(bench.fn.tagCountMax).toBe(256);
    expect(bench.fn.requesterId()).toBe(FUNCTION_ID);
    // No error occurred before.
    expect(bench.software.config(0x6a, 2)).toBe(0);
  });

  it('enables the requested features', async () => {
    for (const [activation, command] of [
      ['none', 0x0000],
      ['memory', 0x0002],
      ['memoryAndBusMaster', 0x0006],
    ] as const) {
      const bench = functionBench();
      await enumerateFunction(bench.access, FUNCTION_ID, config, activation);
      expect(bench.software.config(0x04, 2)).toBe(command);
    }
  });

  it('PCIe 7.8: sets the payload size that both ends support', async () => {
    const bench = functionBench({ maxPayloadSupportedBytes: 128 });
    const found = await enumerateFunction(
      bench.access,
      FUNCTION_ID,
      { ...config, maxReadRequestBytes: 4096 },
      'none',
    );
    expect(found!.maxPayloadBytes).toBe(128);
    expect([bench.fn.maxPayloadBytes(), bench.fn.maxReadRequestBytes()]).toEqual([128, 4096]);
  });

  it('names the window that is too small', async () => {
    const bench = functionBench();
    const small = { ...config, highWindowMib: 8 };
    await expect(enumerateFunction(bench.access, FUNCTION_ID, small, 'none')).rejects.toThrow(
      /highWindowMib is 8, expected room for 1048576 bytes of BAR 0/,
    );
    // Sizing restored everything: BAR0 still holds nothing.
    expect([bench.software.config(0x10), bench.software.config(0x14)]).toEqual([0x4, 0]);
  });

  it('can be repeated with the same result', async () => {
    const bench = functionBench();
    const first = await enumerateFunction(bench.access, FUNCTION_ID, config, 'memory');
    const second = await enumerateFunction(bench.access, FUNCTION_ID, config, 'memory');
    expect(second).toEqual(first);
  });

  it('PCI Local Bus 6.2.5.1: replaces limits set before, and sizes BARs only while they are not decoded', async () => {
    const bench = functionBench();
    await enumerateFunction(bench.access, FUNCTION_ID, { ...config, maxPayloadBytes: 512 }, 'memory');
    let isDecodedWhileSizing = false;
    const watched: ConfigAccess = {
      readConfig32: bench.access.readConfig32,
      writeConfig32: (id, offset, value) => {
        if (offset >= 0x10 && offset < 0x28 && bench.fn.space.isMemoryEnabled) isDecodedWhileSizing = true;
        return bench.access.writeConfig32(id, offset, value);
      },
    };
    await enumerateFunction(watched, FUNCTION_ID, config, 'memory');
    expect(bench.fn.maxPayloadBytes()).toBe(256);
    expect(isDecodedWhileSizing).toBe(false);
  });

  it('PCI Local Bus 6.2.5.1: places BARs of any size aligned and apart', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 20, max: 28 }),
        fc.integer({ min: 12, max: 28 }),
        async (log0, log2) => {
          const bench = functionBench({ bar0Bytes: 2 ** log0, bar2Bytes: 2 ** log2 });
          const { bars } = (await enumerateFunction(bench.access, FUNCTION_ID, config, 'memory'))!;
          const [first, second] = [bars[0]!, bars[2]!];
          expect([first.sizeBytes, second.sizeBytes]).toEqual([2 ** log0, 2 ** log2]);
          expect([first.address % first.sizeBytes, second.address % second.sizeBytes]).toEqual([0, 0]);
          const isApart =
            first.address + first.sizeBytes <= second.address ||
            second.address + second.sizeBytes <= first.address;
          expect(isApart).toBe(true);
          expect(bench.fn.bars.match(second.address + second.sizeBytes - 4, 4)).toBe(2);
          expect(bench.fn.bars.match(first.address, 4)).toBe(0);
          expect(bench.fn.bars.match(second.address + second.sizeBytes - 2, 4)).toBe(-1);
        },
      ),
      { numRuns: 20 },
    );
  });
});

/** A function of only 256 bytes: for headers that our own function does not have. */
function plainFunction(
  bars: readonly { readonly register: number; readonly type: number; readonly mask: number }[],
) {
  const dwords = new Map<number, number>([[0x00, 0x0001_1234]]);
  for (const bar of bars) dwords.set(bar.register, bar.type);
  const access: ConfigAccess = {
    readConfig32: async (_id, offset) => dwords.get(offset) ?? 0,
    writeConfig32: async (_id, offset, value) => {
      const bar = bars.find((candidate) => candidate.register === offset);
      if (bar !== undefined) dwords.set(offset, ((value & bar.mask) | bar.type) >>> 0);
    },
  };
  return { access, dwords };
}

describe('enumeration of other functions', () => {
  it('puts 32-bit BARs below 4 GiB, leaves I/O BARs alone, and does without capabilities', async () => {
    const { access, dwords } = plainFunction([
      { register: 0x10, type: 0, mask: 0xffff_f000 },
      { register: 0x14, type: 1, mask: 0xffff_ff00 },
    ]);
    const found = (await enumerateFunction(access, 8, config, 'none'))!;
    expect(found.bars[0]).toMatchObject({ address: 0xe000_0000, sizeBytes: 4096, is64Bit: false });
    expect(found.bars[1]).toMatchObject({ address: 0, sizeBytes: 256, isIo: true });
    expect(dwords.get(0x14)).toBe(1);
    expect(found.capabilities).toEqual([]);
    expect([found.linkGeneration, found.maxPayloadBytes]).toEqual([0, 128]);
  });

  it('PCI Local Bus 6.2.5.1: sizes a BAR of 4 GiB and more by its upper half', async () => {
    const { access } = plainFunction([
      { register: 0x10, type: 0xc, mask: 0 },
      { register: 0x14, type: 0, mask: 0xffff_fffe },
    ]);
    const big = { ...config, highWindowMib: 16_384 };
    const found = (await enumerateFunction(access, 8, big, 'none'))!;
    expect(found.bars[0]).toMatchObject({ sizeBytes: 2 ** 33, address: 2 ** 35 });
  });

  it('PCI Local Bus 6.7: does not follow a circular capability chain', async () => {
    const { access, dwords } = plainFunction([]);
    dwords.set(0x04, 0x0010_0000);
    dwords.set(0x34, 0x40);
    dwords.set(0x40, 0x0000_4009);
    dwords.set(0x100, 0x1001_0001);
    const found = (await enumerateFunction(access, 8, config, 'none'))!;
    expect(found.capabilities.length).toBe(48);
    expect(found.extendedCapabilities.length).toBe(960);
  });
});
