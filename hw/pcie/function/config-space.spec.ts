import { describe, expect, it } from 'vitest';
import { completionTimeoutUs } from '../../../abi/pci/index.ts';
import { defaultsOf } from '../../../base/parameter.ts';
import { ConfigSpace } from './config-space.ts';
import { functionParameters } from './function-parameters.ts';

const config = defaultsOf(functionParameters);
const newSpace = (changes: Partial<typeof config> = {}): ConfigSpace =>
  new ConfigSpace({ ...config, ...changes }, { generation: 3, lanes: 8 });

describe('the configuration space after power-on', () => {
  it('sheet 1.1: shows the identity of the card, byte by byte', () => {
    const space = newSpace();
    const bytes = Array.from({ length: 0x40 }, (_, at) => space.read(at, 1));
    // Sheet 1.1 and 1.2: ids b3 15 03 10; capabilities list in Status; class 02 80 00; BAR0 64-bit; BAR2 64-bit
    // prefetchable; subsystem b3 15 50 00; first capability at 40; INTA.
    expect(bytes).toEqual([
      0xb3, 0x15, 0x03, 0x10, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x80, 0x02, 0x00, 0x00, 0x00, 0x00, 0x04,
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xb3, 0x15, 0x50, 0x00, 0x00, 0x00, 0x00,
      0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
    ]);
  });

  it('sheet 1.3: chains the capabilities at the offsets of a real card', () => {
    const space = newSpace();
    const chain: [offset: number, id: number][] = [];
    for (let at = space.read(0x34, 1); at !== 0; at = space.read(at + 1, 1))
      chain.push([at, space.read(at, 1)]);
    expect(chain).toEqual([
      [0x40, 0x01],
      [0x48, 0x03],
      [0x60, 0x10],
      [0x9c, 0x11],
      [0xc0, 0x09],
    ]);
    // Extended: id 0x000e at 100, 0x0003 at 148, 0x0001 version 2 at 154.
    expect(space.read(0x100, 4)).toBe(0x1481_000e);
    expect(space.read(0x148, 4)).toBe(0x1541_0003);
    expect(space.read(0x154, 4)).toBe(0x0002_0001);
  });

  it('leaves vital product data out of the chain when it is not present', () => {
    const space = newSpace({ vpdPresent: false });
    expect(space.read(0x41, 1)).toBe(0x60);
    expect(space.read(0x48, 4)).toBe(0);
  });

  it('sheet 1.3: describes power management version 3 without D1, D2 and PME, in D0', () => {
    const space = newSpace();
    expect(space.read(0x42, 2)).toBe(0x0003);
    expect(space.read(0x44, 2)).toBe(0x0000);
  });

  it('sheet 1.3: describes an endpoint with 512 byte payloads, FLR, 8 GT/s and 8 lanes', () => {
    const space = newSpace();
    expect(space.read(0x62, 2)).toBe(0x0002);
    // Payload code 2, extended tag bit 5, role-based reporting bit 15, FLR bit 28.
    expect(space.read(0x64, 4)).toBe(0x1000_8022);
    // Relaxed ordering bit 4, no snoop bit 11, read request code 2 in [14:12].
    expect(space.read(0x68, 2)).toBe(0x2810);
    // Speed 3, width 8 << 4, ASPM optionality bit 22.
    expect(space.read(0x6c, 4)).toBe(0x0040_0083);
    // Speed 3, width 8 << 4, slot clock bit 12.
    expect(space.read(0x72, 2)).toBe(0x1083);
    // Timeout ranges A to D, disable supported.
    expect(space.read(0x84, 4)).toBe(0x1f);
    // 2.5, 5 and 8 GT/s.
    expect(space.read(0x8c, 4)).toBe(0x0e);
  });

  it('sheet 1.3: describes 128 MSI-X vectors with their table at BAR0 + 0x7c000 and pending bits at 0x7d000', () => {
    const space = newSpace();
    expect(space.read(0x9e, 2)).toBe(127);
    expect(space.read(0xa0, 4)).toBe(0x7c000);
    expect(space.read(0xa4, 4)).toBe(0x7d000);
  });

  it('sheet 1.3: has a vendor capability of 0x18 bytes and the serial number', () => {
    const space = newSpace();
    expect(space.read(0xc0, 4)).toBe(0x0018_0009);
    expect(space.read(0x14c, 4)).toBe(0x0000_0100);
    expect(space.read(0x150, 4)).toBe(0x0002_c903);
  });

  it('PCIe 7.10: has the default severities and masks in AER', () => {
    const space = newSpace();
    // Fatal: data link protocol 4, flow control protocol 13, receiver overflow 17, malformed TLP 18.
    expect(space.read(0x160, 4)).toBe(0x0006_2010);
    expect(space.read(0x15c, 4)).toBe(0);
    expect(space.read(0x168, 4)).toBe(0x0000_2000);
  });

  it('reads zero wherever nothing is declared', () => {
    const space = newSpace();
    for (const offset of [0x28, 0x30, 0x50, 0x58, 0x5c, 0xd8, 0x18c, 0xffc]) {
      space.write(offset, 4, 0xffff_ffff);
      expect(space.read(offset, 4)).toBe(0);
    }
  });
});

describe('access modes', () => {
  it('PCIe 7.4: keep read-only registers as they are', () => {
    const space = newSpace();
    for (const offset of [0x00, 0x08, 0x2c, 0x64, 0x6c, 0xa0, 0x148]) {
      const before = space.read(offset, 4);
      space.write(offset, 4, ~before >>> 0);
      expect(space.read(offset, 4)).toBe(before);
    }
  });

  it('PCIe 7.5.1: let only the bits of Command be written that the endpoint implements', () => {
    const space = newSpace();
    space.write(0x04, 2, 0xffff);
    // Memory space, bus master, parity error response, SERR, interrupt disable.
    expect(space.read(0x04, 2)).toBe(0x0546);
  });

  it('write only the enabled bytes', () => {
    const space = newSpace();
    space.write(0x05, 1, 0xff);
    expect(space.read(0x04, 4)).toBe(0x0010_0500);
    space.write(0x3c, 1, 0x5a);
    expect(space.read(0x3c, 4)).toBe(0x0000_015a);
  });

  it('PCIe 7.4: clear a write-one-to-clear bit with a one and leave it with a zero', () => {
    const space = newSpace();
    space.header.set('status', 'receivedMasterAbort', 1);
    space.header.set('status', 'detectedParityError', 1);
    space.write(0x04, 4, 0x2000_0006);
    expect(space.read(0x06, 2)).toBe(0x8010);
    expect(space.read(0x04, 2)).toBe(0x0006);
  });

  it('PCI Local Bus 6.2.5.1: size BARs: all ones read back as 1 MiB and 8 MiB, upper halves writable, unused ones zero', () => {
    const space = newSpace();
    for (let offset = 0x10; offset < 0x28; offset += 4) space.write(offset, 4, 0xffff_ffff);
    const read = Array.from({ length: 6 }, (_, bar) => space.read(0x10 + 4 * bar, 4));
    expect(read).toEqual([0xfff0_0004, 0xffff_ffff, 0xff80_000c, 0xffff_ffff, 0, 0]);
    expect(space.barAddress(0)).toBe(0xffff_ffff * 2 ** 32 + 0xfff0_0000);
  });

  it('PCIe 7.8.4: refuse the extended tag enable when extended tags are not supported', () => {
    const space = newSpace({ extendedTagSupported: false });
    space.write(0x68, 2, 0x0100);
    expect(space.read(0x68, 2)).toBe(0);
    expect(space.tagCountMax).toBe(32);
  });
});

describe('software’s settings', () => {
  it('PCIe 7.8.4: changes the limits of the DMA engines', () => {
    const space = newSpace();
    expect([space.maxPayloadBytes, space.maxReadRequestBytes, space.tagCountMax]).toEqual([128, 512, 32]);
    // Payload code 1, extended tags, read request code 5; relaxed ordering off.
    space.write(0x68, 2, 0x5120);
    expect([space.maxPayloadBytes, space.maxReadRequestBytes, space.tagCountMax]).toEqual([256, 4096, 256]);
    expect(space.isRelaxedOrderingEnabled).toBe(false);
  });

  it('PCIe 7.8.16: chooses the completion timeout, or none', () => {
    const space = newSpace();
    expect(space.completionTimeoutPs).toBe(10_000 * 1e6);
    space.write(0x88, 2, 0x0006);
    expect(space.completionTimeoutPs).toBe(210_000 * 1e6);
    space.write(0x88, 2, 0x0010);
    expect(space.completionTimeoutPs).toBe(Number.POSITIVE_INFINITY);
    expect(completionTimeoutUs(0x7, 1234)).toBe(1234);
  });

  it('discards a power state that is not supported', () => {
    const space = newSpace();
    space.write(0x44, 2, 1);
    expect(space.powerState).toBe(0);
    space.write(0x44, 2, 3);
    expect(space.powerState).toBe(3);
    space.write(0x44, 2, 2);
    expect(space.powerState).toBe(3);
  });

  it('PCI Local Bus appendix I: reads vital product data dword by dword, and completes a store without effect', () => {
    const space = newSpace();
    space.write(0x4a, 2, 0x0000);
    expect(space.read(0x4a, 2)).toBe(0x8000);
    // Identifier string of 3 bytes, then 'H'.
    expect(space.read(0x4c, 4)).toBe(0x4800_0382);
    space.write(0x4a, 2, 0x0004);
    expect(space.read(0x4c, 4)).toBe(0x0078_4143);
    space.write(0x4a, 2, 0x8000);
    expect(space.read(0x4a, 2)).toBe(0x0000);
    space.write(0x4a, 2, 0x0100);
    expect(space.read(0x4c, 4)).toBe(0);
  });
});

describe('resets of configuration space', () => {
  const dirty = (): ConfigSpace => {
    const space = newSpace();
    space.write(0x04, 2, 0x0006);
    space.write(0x10, 4, 0xfff0_0000);
    space.write(0x68, 2, 0x5930);
    space.write(0x70, 2, 0x0048);
    space.write(0x15c, 4, 0x0010_0000);
    return space;
  };

  it('PCIe 6.6.2: function-level keeps the payload size, the link control and sticky bits, and nothing else', () => {
    const space = dirty();
    space.reset('functionLevel');
    expect(space.read(0x04, 2)).toBe(0);
    expect(space.read(0x10, 4)).toBe(0x4);
    // Payload code 1 stays; the rest is 0x2810.
    expect(space.read(0x68, 2)).toBe(0x2830);
    expect(space.read(0x70, 2)).toBe(0x0048);
    expect(space.read(0x15c, 4)).toBe(0x0010_0000);
    expect(space.isMemoryEnabled).toBe(false);
  });

  it('PCIe 6.6: hot keeps sticky bits only, fundamental nothing', () => {
    const space = dirty();
    space.reset('hot');
    expect(space.read(0x68, 2)).toBe(0x2810);
    expect(space.read(0x70, 2)).toBe(0);
    expect(space.read(0x15c, 4)).toBe(0x0010_0000);
    space.reset('fundamental');
    const fresh = newSpace();
    for (let offset = 0; offset < 4096; offset += 4) {
      expect(space.read(offset, 4)).toBe(fresh.read(offset, 4));
    }
  });
});

describe('placing structures', () => {
  it('rejects overlapping capabilities, and a value too wide for its field', () => {
    expect(() => newSpace({ vpdOffset: 0x44 })).toThrow(
      /powerManagementOffset is 64, expected 8 bytes apart from the 8 at vpdOffset \(68\)/,
    );
    expect(() => newSpace({ expressOffset: 0x62 })).toThrow(/expressOffset is 98, expected a multiple of 4/);
    expect(() => newSpace({ vendorOffset: 0xfc })).toThrow(/vendorOffset is 252, expected .* from 64 to 232/);
    expect(() => newSpace({ aerOffset: 0xffc })).toThrow(/aerOffset is 4092, expected .* from 264 to 4040/);
    expect(() => newSpace({ serialNumberOffset: 0x150 })).toThrow(/serialNumberOffset .* aerOffset \(340\)/);
    expect(() => newSpace({ msixVectorCount: 4096 })).toThrow(/msix.control.tableSize is 4095/);
  });
});
