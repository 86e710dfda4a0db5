/**
 * The program in an address space of an i386 Linux: exec stores the path of its file at the very end of the stack, before a
 * word of zeros, and nothing of user space is above the stack. Read from the page tables, it needs no offsets in the kernel's
 * own structures, which differ between builds.
 *
 *     … environment · path of the program \0 · 0 0 0 0 │ end of the stack, up to 8 MiB below 0xc0000000
 *
 * A process has its parent's program until it calls exec. Sources: Linux, fs/exec.c (`bprm->exec`), arch/x86/include/asm/elf.h
 * (`STACK_RND_MASK`) and page_32_types.h (a user space of 3 GiB, as in Debian's kernels).
 */
import type { PageTables } from '../../pc/index.ts';

const userSpaceEnd = 0xc000_0000;
const stackRandomBytes = 8 * 2 ** 20;
const pageBytes = 4096;
/** Zeros at the end of the stack: a word, and the end of the path. */
const endBytes = 5;
const printable = /^[!-~]+$/;

/** Path of the program, as it was started; undefined if no program runs, as before the first process. */
export function programOf(tables: PageTables): string | undefined {
  const page = tables.highestPageBelow(userSpaceEnd, stackRandomBytes + pageBytes);
  if (page === undefined || page.subarray(-endBytes).some((byte) => byte !== 0)) return undefined;
  const end = pageBytes - endBytes;
  const path = new TextDecoder('latin1').decode(page.subarray(page.lastIndexOf(0, end - 1) + 1, end));
  return printable.test(path) ? path : undefined;
}
