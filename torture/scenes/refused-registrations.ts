/**
 * Registrations fail because of a hole or of read-only memory after their first pages, or beyond the limit of pinned pages. They leave no pins,
 * deregistration returns exactly the pins of a registration, and new memory is zero, whatever owned its frames earlier (ibv_reg_mr;
 * RLIMIT_MEMLOCK; mmap(2): anonymous memory is zero-filled).
 *
 *     how much may be pinned is found once ─► steps ─► after each: what is left may be pinned, a page more may not
 */
import { allAccess, openEndpoint } from '../../experiments/workloads/index.ts';
import { deregMr, type IbvMr, type IbvPd, regMr } from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Stage } from './language/index.ts';
import { orCode, patternOf, scene, sumOf, times } from './language/index.ts';

const kinds = ['register', 'register', 'deregister', 'hole', 'readOnly', 'unmapped'] as const;
const pageBytes = 4096;

function draw(random: Draws) {
  const steps = times(6 + random.below(20), () => {
    const pages = 2 + random.below(24);
    return {
      kind: random.oneOf(kinds),
      pages,
      // Offset of the first byte in its page, and distance of the end from that of the last page.
      offset: random.below(pageBytes),
      short: random.below(pageBytes),
      // Page of the hole, or first page that may not be written.
      badPage: 1 + random.below(pages - 1),
      // The program touches the pages before it registers them.
      isTouched: random.chance(0.5),
    };
  });
  const set = {
    'host.memory.memlockLimitKib': 1024 + 4 * random.below(256),
    'host.memory.reservedKib': 44 * 1024,
    'host.memory.framePlacement': random.chance(0.7) ? 'scattered' : 'contiguous',
  };
  return { args: { steps }, set, hasDrawnHardware: random.chance(0.3) } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;
type Step = Args['steps'][number];

/** Memory with a region, as the program keeps it. */
interface Kept {
  readonly mr: IbvMr;
  readonly mapped: number;
  /** Pages that are pinned. */
  readonly pages: number;
  readonly number: number;
}

const lengthOf = ({ pages, offset, short }: Step): number => Math.max(1, pages * pageBytes - offset - short);
const pinnedBy = (step: Step): number => Math.ceil((step.offset + lengthOf(step)) / pageBytes);

/** Codes that a registration may fail with, or an empty word for SUCCESS; of two errors, either. */
function endsOf(step: Step, isOverLimit: boolean): string[] {
  const { kind, badPage } = step;
  const isBad = kind === 'unmapped' || (kind !== 'register' && badPage < pinnedBy(step));
  const refusals = [...(isBad ? ['EFAULT'] : []), ...(isOverLimit ? ['ENOMEM'] : [])];
  return refusals.length === 0 ? [''] : refusals;
}

/** Registers, deregisters, and tries impossible registrations. */
class Registrar {
  readonly #stage: Stage<Args>;
  readonly #pd: IbvPd;
  readonly #kept: Kept[] = [];
  /** Pages that may be pinned with none of its own. */
  #free = 0;

  constructor(stage: Stage<Args>, pd: IbvPd) {
    this.#stage = stage;
    this.#pd = pd;
  }

  async play(): Promise<void> {
    this.#free = await this.#freePages();
    for (const [number, step] of this.#stage.args.steps.entries()) {
      if (step.kind === 'deregister') await this.#deregister(this.#kept.shift());
      else await this.#register(number, step);
      const left = this.#free - this.#held();
      const [enough, tooMany] = [await this.#tryPages(left), await this.#tryPages(left + 1)];
      if (enough !== '' || tooMany !== 'ENOMEM')
        this.#stage.accuse(
          `step ${number}: ${left} pages may be pinned: '${enough}', and one more: '${tooMany}'`,
        );
    }
    for (const one of this.#kept.splice(0)) await this.#deregister(one);
    const atEnd = await this.#freePages();
    if (atEnd !== this.#free)
      this.#stage.accuse(`${atEnd} pages may be pinned at the end instead of ${this.#free}`);
  }

  #held(): number {
    return sumOf(this.#kept.map(({ pages }) => pages));
  }

  async #register(number: number, step: Step): Promise<void> {
    const { kind, pages, offset, badPage, isTouched } = step;
    const { memory } = this.#stage;
    const mapped = memory.map(pages * pageBytes);
    if (isTouched) this.#fill(mapped, pages, number);
    const ends = endsOf(step, pinnedBy(step) > this.#free - this.#held());
    const bad = mapped + badPage * pageBytes;
    if (kind === 'hole') memory.unmap(bad, pageBytes);
    if (kind === 'unmapped') memory.unmap(mapped, pages * pageBytes);
    if (kind === 'readOnly') memory.protect(bad, (pages - badPage) * pageBytes, 'read');
    const mr = await orCode(regMr(this.#pd, mapped + offset, lengthOf(step), allAccess));
    const code = typeof mr === 'string' ? mr : '';
    if (!ends.includes(code)) this.#stage.accuse(`step ${number}, ${kind}: '${code}' instead of '${ends}'`);
    if (typeof mr === 'string') return memory.unmap(mapped, pages * pageBytes);
    if (!isTouched) this.#fill(mapped, pages, number);
    this.#kept.push({ mr, mapped, pages: pinnedBy(step), number });
  }

  async #deregister(kept: Kept | undefined): Promise<void> {
    if (kept === undefined) return;
    const { mr, mapped, number } = kept;
    await deregMr(mr);
    const lengthBytes = Math.ceil((mr.addr + mr.length - mapped) / pageBytes) * pageBytes;
    this.#stage.expectAt(`memory of step ${number}`, mapped, patternOf(number, lengthBytes));
    this.#stage.memory.unmap(mapped, lengthBytes);
  }

  /** Checks that new memory is zero; then writes data that no later owner may see. */
  #fill(address: number, pages: number, number: number): void {
    this.#stage.expectAt(`new memory of step ${number}`, address, new Uint8Array(pages * pageBytes));
    this.#stage.memory.write(address, patternOf(number, pages * pageBytes));
  }

  /** @returns the errno with which pages of memory of their own could not be registered; empty when they could */
  async #tryPages(pages: number): Promise<string> {
    if (pages === 0) return '';
    const { memory } = this.#stage;
    const address = memory.map(pages * pageBytes);
    const mr = await orCode(regMr(this.#pd, address, pages * pageBytes, allAccess));
    if (typeof mr !== 'string') await deregMr(mr);
    memory.unmap(address, pages * pageBytes);
    return typeof mr === 'string' ? mr : '';
  }

  /** Finds by bisection how many pages can be registered now. */
  async #freePages(): Promise<number> {
    let [good, bad] = [0, this.#stage.context.configuration.host.memory.memlockLimitKib / 4 + 1];
    while (bad - good > 1) {
      const middle = Math.floor((good + bad) / 2);
      if ((await this.#tryPages(middle)) === '') good = middle;
      else bad = middle;
    }
    return good;
  }
}

/** Leaves its device open: the kernel closes it. */
async function registrar(stage: Stage<Args>): Promise<void> {
  const { pd } = await openEndpoint(stage.context);
  await new Registrar(stage, pd).play();
}

export const refusedRegistrations = scene({
  about: 'registrations over holes, over memory not to be written and over the limit, among good ones',
  draw,
  programs: [registrar, registrar],
});
