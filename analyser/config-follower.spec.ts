import { beforeEach, describe, expect, it } from 'vitest';
import { ConfigFollower } from './config-follower.ts';
import { TraceFilter } from './filter.ts';
import { Trace } from './trace.ts';
import { TraceLog } from './trace-log.ts';

/** Bus 1, device 0, function 0. */
const target = 0x100;
/** Device control: the PCI Express capability at 0x60 (interface sheet 1.3), register 8 of it; FLR is bit 15. */
const deviceControl = 0x68;

describe('configuration space on the bus', () => {
  let log: TraceLog;
  let resets: string[];
  let config: ConfigFollower;
  beforeEach(() => {
    log = new TraceLog();
    resets = [];
    config = new ConfigFollower(
      new Trace('host0', new TraceFilter(['mmio'], []), log, 'text'),
      (why) => void resets.push(why),
    );
  });
  const write = (offset: number, lengthBytes: number, value: number): void =>
    config.write(target, offset, lengthBytes, value, 1000);
  const read = (offset: number, value: number): void => config.read(target, offset, 0, value, 1000);

  it('assembles a BAR’s address from its two halves, and reads its size when software sizes it', () => {
    expect(config.placeOf(0)).toBeUndefined();
    write(0x10, 4, 0xffff_ffff);
    read(0x10, 0xfff0_0004);
    write(0x10, 4, 0xfea0_0004);
    write(0x14, 4, 0x80);
    expect(config.placeOf(0)).toEqual({ bar: 0, address: 0x80_fea0_0000, sizeBytes: 0x10_0000 });
  });

  it('changes only the bytes that a shorter write names', () => {
    write(0x18, 4, 0xe123_4568);
    write(0x1a, 2, 0x1234_e800);
    expect(config.placeOf(2)).toMatchObject({ address: 0xe800_4560 });
    write(0x1b, 1, 0xffff_fff0);
    expect(config.placeOf(2)).toMatchObject({ address: 0xf000_4560 });
    expect(log.text).toContain('BAR2 + 0x2');
    expect(log.text).toMatch(/<- 0xe800, 2 bytes/);
    expect(log.text).toMatch(/<- 0xf0, 1 byte\b/);
  });

  it.each([
    [deviceControl, 4, 0x8000],
    [deviceControl, 2, 0x8000],
    [deviceControl + 1, 1, 0x80],
  ])('sees a function-level reset written to byte %i in %i bytes', (offset, lengthBytes, value) => {
    write(offset, lengthBytes, value);
    expect(resets).toEqual(['a function-level reset']);
  });

  it.each([
    [deviceControl, 1, 0x8000],
    [deviceControl + 2, 2, 0x8000],
    [deviceControl - 2, 2, 0x8000],
  ])('sees no reset if the bit is not written: byte %i, %i bytes', (offset, lengthBytes, value) => {
    write(offset, lengthBytes, value);
    expect(resets).toEqual([]);
  });
});
