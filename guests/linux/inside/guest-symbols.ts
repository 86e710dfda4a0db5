/**
 * Names for the addresses of a running kernel: its own functions from its file, those of its modules from theirs, at the
 * addresses that the kernel has given them.
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { cpioFiles } from '../image/cpio-files.ts';
import { kallsymsOf, type TextSymbol } from '../image/kallsyms.ts';
import { moduleSymbols } from '../image/module-symbols.ts';
import type { InsideFiles } from './inside-files.ts';

/** A function, or the place of one that has no name. */
export interface GuestFunction {
  /** `kernel`, or the name of a module; undefined for an address of neither. */
  readonly module: string | undefined;
  /** Undefined for an address that belongs to no known function. */
  readonly name: string | undefined;
}

interface Extent extends GuestFunction {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

/** Prints what {@link GuestSymbols} reads. */
export const modulesCommand = 'cat /proc/modules; grep -H . /sys/module/*/sections/.*text* 2>/dev/null; true';

const moduleLine = /^(\w+) (\d+) \d+ \S+ \w+ 0x(\w+)/;
const sectionLine = /^\/sys\/module\/(\w+)\/sections\/(\S+):0x(\w+)/;
/** The kernel frees these after a module's initialisation, and may use their addresses again. */
const freedSections = '.init';
/** They are no functions: they end the kernel's two ranges of text. */
const endMarks: ReadonlySet<string> = new Set(['_etext', '_einittext']);

export class GuestSymbols {
  readonly #extents: readonly Extent[];

  /**
   * @param kernel its text symbols, by address
   * @param modulesText output of {@link modulesCommand}; undefined if it is not known
   * @param fileOf file of a module, if it is known
   */
  constructor(
    kernel: readonly TextSymbol[],
    modulesText: string | undefined,
    fileOf: (module: string) => Uint8Array | undefined,
  ) {
    const end = kernel.at(-1)?.address ?? 0;
    const extents = extentsOf('kernel', kernel, end).filter(({ name }) => !endMarks.has(name!));
    for (const { name, from, to, sections } of modulesIn(modulesText ?? '')) {
      const file = fileOf(name);
      const symbols = file === undefined ? [] : moduleSymbols(file, sections);
      const first = symbols[0]?.address ?? to;
      if (first > from) extents.push({ module: name, name: undefined, from, to: first });
      extents.push(...extentsOf(name, symbols, to));
    }
    this.#extents = extents.sort((a, b) => a.from - b.from);
  }

  /** The function that holds an address of the kernel. */
  at(address: number): GuestFunction {
    let [low, high] = [0, this.#extents.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#extents[middle]!.from <= address) low = middle + 1;
      else high = middle;
    }
    const extent = this.#extents[low - 1];
    if (extent === undefined || address >= extent.to) return { module: undefined, name: undefined };
    return { module: extent.module, name: extent.name };
  }
}

/** Each function ends where the next begins; of several names of an address the first is used, as the kernel does. */
function extentsOf(module: string, symbols: readonly TextSymbol[], end: number): Extent[] {
  const distinct = symbols.filter(({ address }, index) => address !== symbols[index - 1]?.address);
  return distinct.map(({ address, name }, index) => ({
    ...{ module, name, from: address, to: distinct[index + 1]?.address ?? end },
  }));
}

/** Reads a guest's files once; then names the functions of a guest that printed this for {@link modulesCommand}. */
export function kernelSymbolsOf({
  vmlinux,
  initramfs,
}: Pick<InsideFiles, 'vmlinux' | 'initramfs'>): (modulesText: string | undefined) => GuestSymbols {
  const kernel = (vmlinux === undefined ? undefined : kallsymsOf(readFileSync(vmlinux))) ?? [];
  const files = cpioFiles(readFileSync(initramfs), (path) => path.endsWith(moduleEnding));
  const byName = new Map([...files].map(([path, file]) => [moduleName(path), file]));
  return (modulesText) => new GuestSymbols(kernel, modulesText, (name) => byName.get(name));
}

const moduleEnding = '.ko';
const moduleName = (path: string): string => basename(path, moduleEnding).replaceAll('-', '_');

interface LoadedModule {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly sections: Map<string, number>;
}

function modulesIn(text: string): LoadedModule[] {
  const modules = new Map<string, LoadedModule>();
  for (const line of text.split('\n')) {
    const [, name, sizeText, fromText] = moduleLine.exec(line) ?? [];
    if (name !== undefined) {
      const from = Number.parseInt(fromText!, 16);
      modules.set(name, { name, from, to: from + Number(sizeText), sections: new Map() });
      continue;
    }
    const [, owner, section, address] = sectionLine.exec(line) ?? [];
    if (owner !== undefined && !section!.startsWith(freedSections))
      modules.get(owner)?.sections.set(section!, Number.parseInt(address!, 16));
  }
  return [...modules.values()];
}
