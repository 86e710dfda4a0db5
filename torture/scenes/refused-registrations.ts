/**
 * Registrations that fail: behind their first pages there is a hole, or memory that may not be written, or they are more than a
 * process may pin. They leave nothing behind, those that succeed give back exactly what they took, and memory that is new is
 * zero, whatever owned its frames earlier (ibv_reg_mr; RLIMIT_MEMLOCK; mmap(2): anonymous memory is zero-filled).
 *
 *     how much may be pinned is found once ─► steps ─► after each: what is left may be pinned, a page more may not
 */

import { allAccess, openEndpoint, type RcEndpoint } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { deregMr, type IbvMr, regMr, VerbsError } from '../../userlib/index.ts';
import { differencesOf, patternOf, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

const kinds = ['register', 'register', 'deregister', 'hole', 'readOnly', 'unmapped'] as const;

interface Step {
  readonly kind: (typeof kinds)[number];
  readonly pages: number;
  /** Of the first byte in its page, and of the end before that of the last page. */
  readonly offset: number;
  readonly short: number;
  /** Page of the hole, or first page that may not be written. */
  readonly badPage: number;
  /** The program touches the pages before it registers them. */
  readonly isTouched: boolean;
}

interface Args {
  readonly steps: readonly Step[];
}

const pageBytes = 4096;

function draw(random: Random): SceneDraft {
  const args: Args = {
    steps: Array.from({ length: 6 + random.below(20) }, (): Step => {
      const pages = 2 + random.below(24);
      return {
        kind: kinds[random.below(kinds.length)]!,
        pages,
        offset: random.below(pageBytes),
        short: random.below(pageBytes),
        badPage: 1 + random.below(pages - 1),
        isTouched: random.chance(0.5),
      };
    }),
  };
  return {
    args: args as never,
    set: {
      'host.memory.memlockLimitKib': 1024 + 4 * random.below(256),
      'host.memory.reservedKib': 44 * 1024,
      'host.memory.framePlacement': random.chance(0.7) ? 'scattered' : 'contiguous',
    },
    hasDrawnHardware: random.chance(0.3),
  };
}

/** Memory with a region, as the program keeps it. */
interface Kept {
  readonly mr: IbvMr;
  readonly mapped: number;
  readonly pages: number;
  readonly number: number;
}

const rangeOf = ({ pages, offset, short }: Step): readonly [number, number] => [
  offset,
  Math.max(1, pages * pageBytes - offset - short),
];
const pinnedBy = (offset: number, lengthBytes: number): number =>
  Math.ceil((offset + lengthBytes) / pageBytes);

async function codeOf(endpoint: RcEndpoint, address: number, lengthBytes: number): Promise<IbvMr | string> {
  try {
    return await regMr(endpoint.pd, address, lengthBytes, allAccess);
  } catch (error) {
    if (error instanceof VerbsError) return error.code;
    throw error;
  }
}

/** @returns the errno with which pages of memory of their own could not be registered; empty when they could */
async function tryPages(endpoint: RcEndpoint, pages: number): Promise<string> {
  if (pages === 0) return '';
  const { memory } = endpoint.program;
  const address = memory.map(pages * pageBytes);
  const made = await codeOf(endpoint, address, pages * pageBytes);
  if (typeof made !== 'string') await deregMr(made);
  memory.unmap(address, pages * pageBytes);
  return typeof made === 'string' ? made : '';
}

/** How many pages can be registered now, by halves. */
async function freePages(endpoint: RcEndpoint, most: number): Promise<number> {
  let [good, bad] = [0, most + 1];
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if ((await tryPages(endpoint, middle)) === '') good = middle;
    else bad = middle;
  }
  return good;
}

/** Registers, deregisters, and tries what cannot be. */
export async function registrar(program: ProgramContext): Promise<JsonValue> {
  const { steps } = program.args as unknown as Args;
  const { memory } = program;
  const endpoint = await openEndpoint(program);
  const limitPages = program.configuration.host.memory.memlockLimitKib / 4;
  const free = await freePages(endpoint, limitPages);
  const wrong: string[] = [];
  const kept: Kept[] = [];
  const held = (): number => kept.reduce((sum, { pages }) => sum + pages, 0);
  for (const [number, step] of steps.entries()) {
    const { kind, pages, badPage, isTouched } = step;
    const [offset, lengthBytes] = rangeOf(step);
    if (kind === 'deregister') {
      const oldest = kept.shift();
      if (oldest !== undefined) wrong.push(...(await letGo(program, oldest)));
    } else {
      const mapped = memory.map(pages * pageBytes);
      if (isTouched) wrong.push(...filled(program, mapped, pages, number));
      const expected = refusalsOf(step, pinnedBy(offset, lengthBytes) > free - held());
      const bad = mapped + badPage * pageBytes;
      if (kind === 'hole') memory.unmap(bad, pageBytes);
      if (kind === 'unmapped') memory.unmap(mapped, pages * pageBytes);
      if (kind === 'readOnly') memory.protect(bad, (pages - badPage) * pageBytes, 'read');
      const made = await codeOf(endpoint, mapped + offset, lengthBytes);
      const code = typeof made === 'string' ? made : '';
      if (!expected.includes(code))
        wrong.push(
          `step ${number}, ${kind} of ${lengthBytes} bytes: '${code}' instead of '${expected.join()}'`,
        );
      if (typeof made === 'string') memory.unmap(mapped, pages * pageBytes);
      else {
        if (!isTouched) wrong.push(...filled(program, mapped, pages, number));
        kept.push({ mr: made, mapped, pages: pinnedBy(offset, lengthBytes), number });
      }
    }
    const left = free - held();
    const [enough, tooMany] = [await tryPages(endpoint, left), await tryPages(endpoint, left + 1)];
    if (enough !== '' || tooMany !== 'ENOMEM')
      wrong.push(`step ${number}: ${left} pages may be pinned: '${enough}', and one more: '${tooMany}'`);
  }
  for (const one of kept) wrong.push(...(await letGo(program, one)));
  const atEnd = await freePages(endpoint, limitPages);
  if (atEnd !== free) wrong.push(`${atEnd} pages may be pinned at the end instead of ${free}`);
  return { wrong };
}

/** What a registration may end in; where two things are wrong, either. */
function refusalsOf(step: Step, isOverLimit: boolean): string[] {
  const { kind, badPage } = step;
  const isBad = kind === 'unmapped' || (kind !== 'register' && badPage < pinnedBy(...rangeOf(step)));
  const refusals = [...(isBad ? ['EFAULT'] : []), ...(isOverLimit ? ['ENOMEM'] : [])];
  return refusals.length === 0 ? [''] : refusals;
}

/** New memory is zero; then it holds what no later owner may see. */
function filled({ memory }: ProgramContext, address: number, pages: number, number: number): string[] {
  const lengthBytes = pages * pageBytes;
  const wrong = differencesOf(
    `new memory of step ${number}`,
    memory.read(address, lengthBytes),
    new Uint8Array(lengthBytes),
  );
  memory.write(address, patternOf(number, lengthBytes));
  return wrong;
}

async function letGo({ memory }: ProgramContext, { mr, mapped, number }: Kept): Promise<string[]> {
  await deregMr(mr);
  const lengthBytes = Math.ceil((mr.addr + mr.length - mapped) / pageBytes) * pageBytes;
  const wrong = differencesOf(
    `memory of step ${number}`,
    memory.read(mapped, lengthBytes),
    patternOf(number, lengthBytes),
  );
  memory.unmap(mapped, lengthBytes);
  return wrong;
}

export const refusedRegistrations: Scene = {
  name: 'refused-registrations',
  about: 'registrations over holes, over memory not to be written and over the limit, among good ones',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'registrar' },
    { node: 1, exportName: 'registrar' },
  ],
  draw,
  judge: ({ results }) => wrongOf(results),
};
