import { closeSync, ftruncateSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defaultsOf } from '../../base/parameter.ts';
import { createMemfd } from './client/client.ts';
import { DMA_ADDRESS_MAX, DmaMap, type MapRequest } from './memory.ts';
import { nativeLibrary, nativeUnavailableReason } from './native/library.ts';
import { createEventfd } from './native/poll.ts';
import {
  F_ADD_SEALS,
  F_GET_SEALS,
  F_SEAL_FUTURE_WRITE,
  F_SEAL_SHRINK,
  F_SEAL_WRITE,
} from './native/structures.ts';
import { openDescriptorCount } from './testing/bench.ts';
import { vfioUserParameters } from './vfio-user/parameters.ts';

const { EACCES, EEXIST, EINVAL, ENOENT, ENOMEM, ENOSPC } = constants.errno;
const unavailable = nativeUnavailableReason();
if (unavailable !== undefined) console.warn(`skipped: ${unavailable}`);
const page = 4096;
const gib = 2 ** 30;

describe.skipIf(unavailable !== undefined)('guest memory', () => {
  const config = { ...defaultsOf(vfioUserParameters), memoryFileCountMax: 3, idleMemoryFileCountMax: 1 };
  let before = 0;
  let memory: DmaMap;
  const opened: number[] = [];

  beforeEach(() => {
    before = openDescriptorCount();
    memory = new DmaMap(config);
  });

  afterEach(() => {
    memory.release();
    for (const descriptor of opened.splice(0)) closeSync(descriptor);
    expect(openDescriptorCount()).toBe(before);
  });

  const memfd = (sizeBytes: number, canSeal = true): number => {
    const descriptor = createMemfd(sizeBytes, { canSeal });
    opened.push(descriptor);
    return descriptor;
  };
  /** Like SCM_RIGHTS: another descriptor of the same open file, which the map takes over. */
  const passed = (descriptor: number): number => {
    const F_DUPFD_CLOEXEC = 1030;
    return nativeLibrary().fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  };
  const map = (values: Partial<MapRequest>): number =>
    memory.map({
      address: 0,
      sizeBytes: page,
      isReadable: true,
      isWritable: true,
      fileOffset: 0,
      ...values,
      descriptor: values.descriptor === undefined ? -1 : passed(values.descriptor),
    });
  const bytesOf = (text: string): Uint8Array => Buffer.from(text);
  const fileText = (descriptor: number, offset: number, lengthBytes: number): string => {
    const bytes = Buffer.alloc(lengthBytes);
    readSync(descriptor, bytes, 0, lengthBytes, offset);
    return bytes.toString('latin1');
  };

  it('equals the bytes of the memfd, in both directions', () => {
    const ram = memfd(4 * page);
    expect(map({ address: 0x10_0000, sizeBytes: 2 * page, fileOffset: page, descriptor: ram })).toBe(0);
    writeSync(ram, bytesOf('from the guest'), 0, 14, page + 8);
    expect(memory.read(0x10_0008, 14)).toEqual(new Uint8Array(bytesOf('from the guest')));
    expect(memory.write(0x10_0000 + page - 3, 6, bytesOf('device'), 0)).toBe(true);
    expect(fileText(ram, 2 * page - 3, 6)).toBe('device');
    expect(memory.regions[0]?.access).toBe('mapped');
    expect(memory.sizeBytes).toBe(0x10_0000 + 2 * page);
  });

  it('copies any alignment and length exactly, and nothing else', () => {
    const ram = memfd(2 * page);
    expect(map({ sizeBytes: 2 * page, descriptor: ram })).toBe(0);
    fc.assert(
      fc.property(
        fc.nat(page),
        fc.integer({ min: 0, max: 600 }),
        fc.nat(9),
        fc.nat(255),
        (address, lengthBytes, sourceOffset, fill) => {
          memory.write(0, 2 * page, new Uint8Array(2 * page).fill(fill ^ 0xff), 0);
          const source = Uint8Array.from({ length: lengthBytes + 16 }, (_, at) => (at * 7 + fill) & 0xff);
          expect(memory.write(address, lengthBytes, source, sourceOffset)).toBe(true);
          const whole = new Uint8Array(2 * page).fill(fill ^ 0xff);
          whole.set(source.subarray(sourceOffset, sourceOffset + lengthBytes), address);
          expect(Buffer.compare(memory.read(0, 2 * page)!, whole)).toBe(0);
          const target = new Uint8Array(lengthBytes + 16).fill(0x5a);
          expect(memory.readInto(address, lengthBytes, target, sourceOffset)).toBe(true);
          const expected = new Uint8Array(lengthBytes + 16).fill(0x5a);
          expected.set(source.subarray(sourceOffset, sourceOffset + lengthBytes), sourceOffset);
          expect(Buffer.compare(target, expected)).toBe(0);
        },
      ),
      { seed: 3, numRuns: 500 },
    );
  });

  it('rejects incompletely mapped ranges, without any access', () => {
    const ram = memfd(4 * page);
    map({ address: page, sizeBytes: page, descriptor: ram });
    const target = new Uint8Array(16).fill(7);
    for (const address of [0, page - 1, 2 * page - 1, 2 * page, -8, 2 ** 53, Number.NaN]) {
      expect(memory.readInto(address, 8, target, 0)).toBe(false);
      expect(memory.write(address, 8, target, 0)).toBe(false);
      expect(memory.read(address, 8)).toBeUndefined();
      expect(memory.canRead(address, 8)).toBe(false);
    }
    expect(target).toEqual(new Uint8Array(16).fill(7));
    expect(memory.read(page, page)).toEqual(new Uint8Array(page));
  });

  it('reads and writes across adjacent regions, of one file or several, and not across a gap', () => {
    const low = memfd(page);
    const high = memfd(page);
    map({ address: 0, descriptor: low });
    map({ address: 2 * page, descriptor: low });
    map({ address: page, descriptor: high });
    expect(memory.write(page - 4, page + 8, new Uint8Array(page + 8).fill(0x61), 0)).toBe(true);
    expect(fileText(low, page - 4, 4)).toBe('aaaa');
    expect(fileText(low, 0, 5)).toBe('aaaa\0');
    expect(memory.read(page - 5, page + 10)).toEqual(
      Uint8Array.from({ length: page + 10 }, (_, at) => (at === 0 || at === page + 9 ? 0 : 0x61)),
    );
    expect(memory.unmap(page, page)).toBe(0);
    expect(memory.read(page - 4, 8)).toBeUndefined();
    expect(memory.write(page - 4, page + 8, new Uint8Array(page + 8), 0)).toBe(false);
    expect(fileText(low, page - 4, 4)).toBe('aaaa');
  });

  it('obeys the rights of each region', () => {
    const ram = memfd(2 * page);
    map({ address: 0, isWritable: false, descriptor: ram });
    map({ address: page, fileOffset: page, isReadable: false, descriptor: ram });
    expect(memory.read(0, 8)).toBeDefined();
    expect(memory.write(0, 8, new Uint8Array(8), 0)).toBe(false);
    expect(memory.write(page, 8, new Uint8Array(8), 0)).toBe(true);
    expect(memory.read(page, 8)).toBeUndefined();
    expect(memory.read(page - 4, 8)).toBeUndefined();
    expect(memory.write(page - 4, 8, new Uint8Array(8), 0)).toBe(false);
  });

  it('accepts a region without a descriptor and refuses access to it', () => {
    expect(map({})).toBe(0);
    expect(memory.regions[0]?.access).toBe('none');
    expect(memory.read(0, 4)).toBeUndefined();
    expect(memory.write(0, 4, new Uint8Array(4), 0)).toBe(false);
    expect(memory.unmap(0, page)).toBe(0);
  });

  it.each([
    ['an empty one', { sizeBytes: 0 }, EINVAL],
    ['one beyond 2^52', { address: DMA_ADDRESS_MAX, sizeBytes: page }, EINVAL],
    ['one of 2^64 − 4096', { sizeBytes: Number(2n ** 64n - 4096n) }, EINVAL],
    ['an address within a page', { address: 8 }, EINVAL],
    ['a size that is not whole pages', { sizeBytes: page + 1 }, EINVAL],
    ['a file offset within a page', { fileOffset: 16 }, EINVAL],
    ['a file offset near 2^64', { fileOffset: Number(2n ** 64n - 4096n) }, EINVAL],
    ['one without any right', { isReadable: false, isWritable: false }, EINVAL],
    ['one longer than its file', { sizeBytes: 3 * page }, EINVAL],
    ['one that ends behind its file', { fileOffset: 2 * page }, EINVAL],
    ['one that overlaps the end of another', { address: 0x2_0000 }, EEXIST],
    ['one that holds another', { address: 0x1_f000, sizeBytes: 2 * page }, EEXIST],
  ])('refuses %s', (_, values, errno) => {
    const ram = memfd(2 * page);
    map({ address: 0x2_0000, descriptor: ram });
    expect(map({ ...values, descriptor: ram })).toBe(errno);
    expect(memory.regions).toHaveLength(1);
  });

  it('rejects anything but shared memory: a disk file, an eventfd, a folder, a socket', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hca-memory-'));
    const file = openSync(join(folder, 'ram'), 'w+');
    ftruncateSync(file, page);
    opened.push(file, openSync(folder, 'r'), openSync('/dev/null', 'r'), createEventfd());
    const statuses = opened.map((descriptor) => map({ descriptor }));
    rmSync(folder, { recursive: true });
    expect(statuses).toEqual(opened.map(() => EINVAL));
  });

  it('rejects write rights on a memfd sealed against writes, and maps it for reading', () => {
    for (const seal of [F_SEAL_WRITE, F_SEAL_FUTURE_WRITE]) {
      const ram = memfd(page);
      nativeLibrary().fcntl(ram, F_ADD_SEALS, seal);
      expect(map({ descriptor: ram })).toBe(EACCES);
      expect(map({ descriptor: ram, isWritable: false })).toBe(0);
      expect(memory.read(0, 4)).toEqual(new Uint8Array(4));
      expect(memory.unmap(0, page)).toBe(0);
    }
  });

  it('limits regions, files and windows', () => {
    memory = new DmaMap({ ...config, dmaMapCountMax: 2, memoryWindowCountMax: 2, memoryFileCountMax: 1 });
    const ram = memfd(4 * gib);
    expect(map({ sizeBytes: 3 * gib, descriptor: ram })).toBe(ENOMEM);
    expect(map({ sizeBytes: 2 * gib, descriptor: ram })).toBe(0);
    expect(map({ address: 2 * gib, fileOffset: 3 * gib, descriptor: ram })).toBe(ENOMEM);
    expect(map({ address: 2 * gib, descriptor: memfd(page) })).toBe(ENOSPC);
    expect(map({ address: 3 * gib })).toBe(0);
    expect(map({ address: 4 * gib })).toBe(ENOSPC);
  });

  it('reaches every byte of 5 GiB of RAM, also where windows meet', () => {
    const ram = memfd(5 * gib);
    expect(map({ address: 4 * gib, sizeBytes: 4 * gib, fileOffset: gib - page, descriptor: ram })).toBe(0);
    for (const fileOffset of [gib - page, gib - 3, 2 * gib - 5, 4 * gib - 1, 5 * gib - page - 8]) {
      const address = 4 * gib + fileOffset - (gib - page);
      expect(memory.write(address, 8, bytesOf('12345678'), 0)).toBe(true);
      expect(fileText(ram, fileOffset, 8)).toBe('12345678');
      expect(Buffer.from(memory.read(address, 8)!).toString()).toBe('12345678');
    }
  });

  it('sees the new part of a grown memfd', () => {
    const ram = memfd(page);
    expect(map({ descriptor: ram })).toBe(0);
    ftruncateSync(ram, 3 * page);
    expect(map({ address: page, sizeBytes: 2 * page, fileOffset: page, descriptor: ram })).toBe(0);
    expect(memory.write(page - 2, 4, bytesOf('grow'), 0)).toBe(true);
    expect(fileText(ram, page - 2, 4)).toBe('grow');
  });

  describe('does not fault when a client truncates its memory', () => {
    it('by sealing what can be sealed', () => {
      const ram = memfd(2 * page);
      expect(map({ sizeBytes: 2 * page, descriptor: ram })).toBe(0);
      expect(() => ftruncateSync(ram, 0)).toThrow('EPERM');
      expect(nativeLibrary().fcntl(ram, F_GET_SEALS, 0) & F_SEAL_SHRINK).toBe(F_SEAL_SHRINK);
      expect(memory.read(page, 8)).toEqual(new Uint8Array(8));
    });

    it('by pread and pwrite on what cannot', () => {
      const ram = memfd(2 * page, false);
      expect(map({ sizeBytes: 2 * page, descriptor: ram })).toBe(0);
      expect(memory.regions[0]?.access).toBe('file');
      expect(memory.write(page - 2, 4, bytesOf('slow'), 0)).toBe(true);
      expect(fileText(ram, page - 2, 4)).toBe('slow');
      ftruncateSync(ram, page);
      expect(memory.read(page, 8)).toBeUndefined();
      expect(Buffer.from(memory.read(page - 2, 2)!).toString()).toBe('sl');
    });
  });

  it('unmaps only what was mapped, exactly', () => {
    const ram = memfd(2 * page);
    map({ address: page, sizeBytes: 2 * page, descriptor: ram });
    expect(memory.unmap(page, page)).toBe(ENOENT);
    expect(memory.unmap(0, 3 * page)).toBe(ENOENT);
    expect(memory.unmap(2 * page, page)).toBe(ENOENT);
    expect(memory.unmap(page, 2 * page)).toBe(0);
    expect(memory.unmap(page, 2 * page)).toBe(ENOENT);
    expect(memory.read(page, 4)).toBeUndefined();
    expect(memory.sizeBytes).toBe(0);
  });

  it('holds one descriptor for RAM that is mapped again and again, and few for idle files', () => {
    const files = [memfd(page), memfd(page), memfd(page), memfd(page)];
    const held = openDescriptorCount();
    for (let round = 0; round < 50; round++) {
      for (const descriptor of files) {
        expect(map({ descriptor })).toBe(0);
        expect(map({ address: page, descriptor })).toBe(0);
        memory.unmapAll();
        expect(openDescriptorCount()).toBeLessThanOrEqual(held + config.idleMemoryFileCountMax);
      }
    }
    memory.release();
    expect(openDescriptorCount()).toBe(held);
  });

  it('answers like a plain array of bytes, for any sequence of maps, unmaps and accesses', () => {
    const pageCount = 16;
    const ram = memfd(pageCount * page);
    const action = fc.record({
      kind: fc.constantFrom('map', 'unmap', 'read', 'write'),
      at: fc.nat(pageCount - 1),
      pages: fc.integer({ min: 1, max: 4 }),
      offset: fc.nat(page - 1),
      lengthBytes: fc.integer({ min: 1, max: 2 * page }),
      isWritable: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        memory.unmapAll();
        const model = new Uint8Array(pageCount * page);
        ftruncateSync(ram, pageCount * page);
        writeSync(ram, model, 0, model.length, 0);
        const rights: (undefined | { first: number; pages: number; isWritable: boolean })[] = [];
        for (const { kind, at, pages, offset, lengthBytes, isWritable } of actions) {
          const span = Array.from({ length: pages }, (_, index) => at + index);
          if (kind === 'map') {
            const fits = at + pages <= pageCount;
            const isFree = span.every((each) => rights[each] === undefined);
            const status = map({
              address: at * page,
              sizeBytes: pages * page,
              fileOffset: at * page,
              isWritable,
              descriptor: ram,
            });
            expect(status).toBe(isFree ? (fits ? 0 : EINVAL) : EEXIST);
            if (status === 0) for (const each of span) rights[each] = { first: at, pages, isWritable };
          } else if (kind === 'unmap') {
            const isKnown = rights[at]?.first === at && rights[at]?.pages === pages;
            expect(memory.unmap(at * page, pages * page)).toBe(isKnown ? 0 : ENOENT);
            if (isKnown) for (const each of span) rights[each] = undefined;
          } else {
            const start = at * page + offset;
            const touched = Array.from(
              { length: Math.floor((start + lengthBytes - 1) / page) - at + 1 },
              (_, index) => rights[at + index],
            );
            if (kind === 'read') {
              const isAllowed = touched.every((right) => right !== undefined);
              const expected = isAllowed ? model.slice(start, start + lengthBytes) : undefined;
              const actual = memory.read(start, lengthBytes);
              expect(actual === undefined).toBe(expected === undefined);
              expect(memory.canRead(start, lengthBytes)).toBe(isAllowed);
              if (expected !== undefined) expect(Buffer.compare(actual!, expected)).toBe(0);
            } else {
              const isAllowed = touched.every((right) => right?.isWritable === true);
              const source = new Uint8Array(lengthBytes).fill((offset & 0xff) | 1);
              expect(memory.write(start, lengthBytes, source, 0)).toBe(isAllowed);
              if (isAllowed) model.set(source, start);
            }
          }
        }
        const whole = new Uint8Array(pageCount * page);
        readSync(ram, whole, 0, whole.length, 0);
        expect(Buffer.compare(whole, model)).toBe(0);
      }),
      { seed: 11, numRuns: 150 },
    );
  });
});
