/**
 * Processes that map, share, fork, move, protect, advise, pin and end at random, in less memory than they use, while a device
 * writes to pinned pages. Each page is judged by a model of memory that knows no frames: a process maps pages to contents, a
 * fork copies those of private pages and shares the others, a private page of a file is the file's until it is written.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AddressSpace } from './address-space.ts';
import { pageBytes } from './page.ts';
import type { PinnedPages } from './pins.ts';
import { newFile, newTestMemory } from './testing.ts';

/** Stories: `npm run fuzz` sets them, and the seed. */
const stories = Math.ceil(Number(process.env['HOSTILE_PACKETS'] ?? 4_000) / 50);
const seed = Number(process.env['HOSTILE_SEED'] ?? 17);

/** Processes and pages at a time: their total fits memory and swap, and pinned pages fit half of the memory. */
const processesMax = 4;
const pagesMax = 300;
const pinnedPagesMax = 60;
const freeKib = 160 * 4;

/** Content of a page: bytes by their offset, zero where nothing was written. */
type Content = Map<number, number>;

interface Page {
  content: Content;
  /** The file's page, which other processes may write, under an unwritten private mapping of a file. */
  readonly ofFile: Content | undefined;
  readonly isShared: boolean;
  isWritable: boolean;
  isInherited: boolean;
  readonly isOfFile: boolean;
}

/** A private page of a file becomes exclusive with its first write, and from the moment when a device may read it. */
function own(page: Page): void {
  if (page.content === page.ofFile) page.content = new Map(page.content);
}

interface Pin {
  readonly space: AddressSpace;
  readonly pinned: PinnedPages;
  /** Pages that the device reaches, one by one. */
  readonly contents: readonly Content[];
}

interface Range {
  readonly address: number;
  pageCount: number;
}

class Process {
  readonly space: AddressSpace;
  readonly pages = new Map<number, Page>();
  /** Its mappings, to choose from: parts of them may be unmapped. */
  ranges: Range[] = [];

  constructor(space: AddressSpace) {
    this.space = space;
  }
}

/** Pages of the file that processes map. */
const filePages = 6;

class Story {
  readonly #file = newFile('data', new Uint8Array(filePages * pageBytes).fill(9));
  readonly #fileContents = Array.from({ length: filePages }, (): Content => new Map([[0, 9]]));
  readonly all = newTestMemory({ paging: { minFreeKib: 64 }, swap: { sizeMib: 4 } }, freeKib);
  readonly processes: Process[] = [new Process(this.all.mm.newSpace())];
  readonly pins: Pin[] = [];

  get pageCount(): number {
    return this.processes.reduce((sum, { pages }) => sum + pages.size, 0);
  }

  step({ does, a, b, c, value }: Step): void {
    const process = this.processes[a % this.processes.length]!;
    const range = process.ranges[b % Math.max(1, process.ranges.length)];
    if (does === 'map') return this.#map(process, 1 + (b % 12), c % 3 === 0, c % 7 !== 0);
    if (does === 'mapFile') return this.#mapFile(process, b % filePages, c % 2 === 0);
    if (does === 'fork') return this.#fork(process);
    if (does === 'exit') return this.#exit(a);
    if (does === 'unpin') return this.#unpin(a);
    if (does === 'device') return this.#write(a, b, value);
    if (range === undefined) return;
    const first = c % range.pageCount;
    const count = 1 + (value % (range.pageCount - first));
    const at = range.address + first * pageBytes;
    if (does === 'store') this.#store(process, at + ((a * 37 + b * 11) % pageBytes), value);
    else if (does === 'unmap') this.#unmap(process, at, count);
    else if (does === 'protect') this.#protect(process, at, count, a % 2 === 0);
    else if (does === 'advise') this.#advise(process, at, count, advices[a % advices.length]!);
    else if (does === 'remap') this.#remap(process, at, count, 1 + (a % 8), b % 3 !== 0);
    else if (does === 'replace') this.#replace(process, at, count, a % 2 === 0);
    else this.#pin(process, at, count, a % 2 === 0 ? 'write' : 'read');
  }

  /** Every byte that was ever written, and the first of each page, as every process reads them. */
  check(): void {
    for (const { space, pages, ranges } of this.processes) {
      for (const [address, { content }] of pages)
        for (const [place, value] of [[0, content.get(0) ?? 0] as const, ...content])
          expect([address, place, byteAt(space, address + place)]).toEqual([address, place, value]);
      for (const { address, pageCount } of ranges)
        for (let page = 0; page < pageCount; page++)
          if (!pages.has(address + page * pageBytes))
            expect(byteAt(space, address + page * pageBytes)).toBe(undefined);
    }
  }

  end(): void {
    for (let pin = this.pins.length; pin > 0; pin--) this.#unpin(0);
    for (const { space } of this.processes) space.release();
    // Only the page cache is left.
    const { frames, swap } = this.all.mm;
    const cached = this.#file.frames.filter((frame) => frame >= 0).length;
    expect([frames.usedCount - cached, swap.usedCount]).toEqual([0, 0]);
  }

  #map(process: Process, pageCount: number, isShared: boolean, isWritable: boolean): void {
    if (this.pageCount + pageCount > pagesMax) return;
    const access = isWritable ? 'readWrite' : 'read';
    const address = process.space.mapWith(pageCount * pageBytes, { isShared, access });
    expect(address).toBeGreaterThan(0);
    fresh(process, address, pageCount, isShared, isWritable);
    process.ranges.push({ address, pageCount });
  }

  #mapFile(process: Process, firstPage: number, isShared: boolean): void {
    const pageCount = filePages - firstPage;
    if (this.pageCount + pageCount > pagesMax) return;
    const options = { file: this.#file, fileOffset: firstPage * pageBytes, isShared };
    const address = process.space.mapWith(pageCount * pageBytes, options);
    for (const [index, page] of pagesOf(address, pageCount).entries()) {
      const content = this.#fileContents[firstPage + index]!;
      const ofFile = isShared ? undefined : content;
      process.pages.set(page, {
        content,
        ofFile,
        isShared,
        isWritable: true,
        isInherited: true,
        isOfFile: true,
      });
    }
    process.ranges.push({ address, pageCount });
  }

  #replace(process: Process, address: number, pageCount: number, isShared: boolean): void {
    const { pages, space } = process;
    const added = pagesOf(address, pageCount).filter((page) => !pages.has(page)).length;
    if (this.pageCount + added > pagesMax) return;
    expect(space.mapFixed(address, pageCount * pageBytes, { isShared })).toBe(address);
    fresh(process, address, pageCount, isShared, true);
  }

  #fork(parent: Process): void {
    if (this.processes.length === processesMax || this.pageCount + parent.pages.size > pagesMax) return;
    const child = new Process(this.all.mm.newSpace());
    expect(parent.space.fork(child.space)).toBe(true);
    for (const [address, page] of parent.pages) {
      if (!page.isInherited) continue;
      const isCommon = page.isShared || page.content === page.ofFile;
      const content = isCommon ? page.content : new Map(page.content);
      child.pages.set(address, { ...page, content });
    }
    child.ranges = parent.ranges.map((range) => ({ ...range }));
    this.processes.push(child);
  }

  /** A process ends while the device still holds its pins; at least one process always exists. */
  #exit(which: number): void {
    const [process] = this.processes.splice(which % this.processes.length, 1);
    process!.space.release();
    if (this.processes.length === 0) this.processes.push(new Process(this.all.mm.newSpace()));
  }

  #store({ space, pages }: Process, address: number, value: number): void {
    const place = address % pageBytes;
    const page = pages.get(address - place);
    const isAllowed = page?.isWritable === true;
    expect(space.write(address, Uint8Array.of(value))).toBe(isAllowed);
    if (!isAllowed) return;
    own(page);
    page.content.set(place, value);
  }

  #unmap({ space, pages }: Process, address: number, pageCount: number): void {
    space.unmap(address, pageCount * pageBytes);
    for (const page of pagesOf(address, pageCount)) pages.delete(page);
  }

  #protect({ space, pages }: Process, address: number, pageCount: number, isWritable: boolean): void {
    const range = pagesOf(address, pageCount);
    const isMapped = range.every((page) => pages.has(page));
    const isDone = space.protect(address, pageCount * pageBytes, isWritable ? 'readWrite' : 'read');
    expect(isDone).toBe(isMapped);
    if (isDone) for (const page of range) pages.get(page)!.isWritable = isWritable;
  }

  #advise({ space, pages }: Process, address: number, pageCount: number, advice: Advice): void {
    const range = pagesOf(address, pageCount);
    const isMapped = range.every((page) => pages.has(page));
    expect(space.advise(address, pageCount * pageBytes, advice)).toBe(isMapped ? undefined : 'ENOMEM');
    if (!isMapped) return;
    for (const page of range.map((at) => pages.get(at)!)) {
      if (advice === 'dontNeed' && !page.isShared) page.content = page.ofFile ?? new Map();
      if (advice === 'populateWrite' && page.isWritable) own(page);
      if (advice === 'doFork' || advice === 'dontFork') page.isInherited = advice === 'doFork';
    }
  }

  /** Moves or grows a part of one mapping; growth of a shared mapping has no pages after its end, and is then left out. */
  #remap(process: Process, address: number, pageCount: number, newCount: number, mayMove: boolean): void {
    const { space, pages } = process;
    const range = pagesOf(address, pageCount);
    const { isShared = false, isOfFile = false } = pages.get(address) ?? {};
    if (newCount > pageCount && (isShared || isOfFile || this.pageCount + newCount - pageCount > pagesMax))
      return;
    const answer = space.remap(address, pageCount * pageBytes, newCount * pageBytes, mayMove);
    if (typeof answer === 'string') return;
    const before = range.map((page) => pages.get(page)!);
    expect(before.every((page) => page !== undefined)).toBe(true);
    for (const page of range) pages.delete(page);
    for (const [index, target] of pagesOf(answer, newCount).entries())
      pages.set(target, before[index] ?? { ...before[0]!, content: new Map() });
    process.ranges.push({ address: answer, pageCount: newCount });
  }

  #pin({ space, pages }: Process, address: number, pageCount: number, access: 'read' | 'write'): void {
    const held = this.pins.reduce((sum, { contents }) => sum + contents.length, 0);
    if (held + pageCount > pinnedPagesMax) return;
    const range = pagesOf(address, pageCount).map((page) => pages.get(page));
    const isAllowed = range.every((page) => page !== undefined && (access === 'read' || mayBePinned(page)));
    const pinned = space.pin(address, pageCount * pageBytes, access);
    if (!isAllowed) return expect(pinned).toBe('EFAULT');
    if (typeof pinned === 'string') throw new Error(`a pin of ${pageCount} pages: ${pinned}`);
    for (const page of range) own(page!);
    const contents = range.map((page) => page!.content);
    if (access === 'read') this.#holds(pinned, contents);
    this.pins.push({ space, pinned, contents });
  }

  /** Contents of pinned pages as the device finds them. */
  #holds({ pages }: PinnedPages, contents: readonly Content[]): void {
    for (const [index, content] of contents.entries())
      for (const [place, value] of content) expect(this.all.memory.bytes[pages[index]! + place]).toBe(value);
  }

  #write(which: number, index: number, value: number): void {
    const pin = this.pins[which % Math.max(1, this.pins.length)];
    if (pin === undefined) return;
    this.#holds(pin.pinned, pin.contents);
    const page = index % pin.contents.length;
    const place = (index * 53) % pageBytes;
    this.all.memory.bytes[pin.pinned.pages[page]! + place] = value;
    pin.contents[page]!.set(place, value);
  }

  #unpin(which: number): void {
    const [pin] = this.pins.splice(which % Math.max(1, this.pins.length), 1);
    if (pin === undefined) return;
    this.#holds(pin.pinned, pin.contents);
    pin.space.unpin(pin.pinned);
  }
}

/**
 * True if the page may be pinned for writing: excludes file pages that others see, because their file system must see
 * the writes.
 */
const mayBePinned = ({ isWritable, isShared, isOfFile }: Page): boolean =>
  isWritable && !(isShared && isOfFile);

const advices = ['dontNeed', 'dontFork', 'doFork', 'populateWrite'] as const;
type Advice = (typeof advices)[number];

function pagesOf(address: number, pageCount: number): number[] {
  return Array.from({ length: pageCount }, (_, page) => address + page * pageBytes);
}

function fresh(
  { pages }: Process,
  address: number,
  pageCount: number,
  isShared: boolean,
  isWritable: boolean,
): void {
  for (const page of pagesOf(address, pageCount))
    pages.set(page, {
      content: new Map(),
      ofFile: undefined,
      isShared,
      isWritable,
      isInherited: true,
      isOfFile: false,
    });
}

function byteAt(space: AddressSpace, address: number): number | undefined {
  const byte = new Uint8Array(1);
  return space.read(address, byte) ? byte[0] : undefined;
}

const kinds = [
  ...[
    'map',
    'map',
    'mapFile',
    'store',
    'store',
    'store',
    'store',
    'store',
    'fork',
    'exit',
    'unmap',
    'protect',
  ],
  ...['advise', 'remap', 'replace', 'pin', 'device', 'device', 'unpin'],
];
const steps = fc.record({
  does: fc.constantFrom(...kinds),
  a: fc.nat(99),
  b: fc.nat(9999),
  c: fc.nat(9999),
  value: fc.integer({ min: 1, max: 255 }),
});
type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never;

describe('memory of processes', () => {
  it('keeps every byte through any actions, and all memory is released', {
    timeout: 24 * 3600_000,
  }, () => {
    fc.assert(
      fc.property(fc.array(steps, { minLength: 1, maxLength: 150, size: 'max' }), (all) => {
        const story = new Story();
        for (const [at, step] of all.entries()) {
          story.step(step);
          if (at % 16 === 15) story.check();
        }
        story.check();
        story.end();
      }),
      { seed, numRuns: stories },
    );
  });
});
