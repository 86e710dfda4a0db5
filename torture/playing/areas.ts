/** The areas of a player: filled, registered, deregistered and created again, returned, read. */
import { deregMr, IBV_ACCESS_LOCAL_WRITE, type IbvMr, regMr } from '../../userlib/index.ts';
import { isOnDemandArea, patternInto } from '../story.ts';
import type { Receives } from './receives.ts';
import { base64, type OpenArea, pageBytes, type Session } from './session.ts';
import type { Waiting } from './waiting.ts';

export class Areas {
  readonly #session: Session;
  readonly #waiting: Waiting;
  readonly #receives: Receives;
  /** Number of times that each area was filled, minus one. */
  readonly #fills: number[] = [];
  /** Areas registered once more, under keys that no request uses. */
  readonly #renewed: IbvMr[] = [];
  readonly #scratch: { readonly mr: IbvMr; readonly address: number; readonly lengthBytes: number }[] = [];

  constructor(session: Session, waiting: Waiting, receives: Receives) {
    this.#session = session;
    this.#waiting = waiting;
    this.#receives = receives;
  }

  /** Maps, fills and registers all of the plan. */
  async open(): Promise<void> {
    const { plan, program, areas } = this.#session;
    for (const [index, { lengthBytes, shiftBytes }] of plan.areas.entries()) {
      const address = program.memory.map(shiftBytes + lengthBytes + pageBytes) + shiftBytes;
      areas.push({ address, mr: undefined, lengthBytes });
      this.#fills.push(-1);
      this.#fill(index);
    }
    for (const [index, area] of areas.entries()) area.mr = await this.#register(index);
  }

  /** All regions that are left. */
  get regions(): IbvMr[] {
    const areas = this.#session.areas.flatMap(({ mr }) => (mr === undefined ? [] : [mr]));
    return [...this.#renewed, ...this.#scratch.map(({ mr }) => mr), ...areas];
  }

  /** Notes the bytes of all areas. */
  look(): void {
    const { areas, program, seen } = this.#session;
    for (const { address, lengthBytes } of areas)
      seen.finals.push(base64(program.memory.read(address, lengthBytes)));
    seen.finalPs = this.#session.nowPs;
  }

  #register(area: number): Promise<IbvMr> {
    const { plan, pds, areas } = this.#session;
    const { access, isForeign } = plan.areas[area]!;
    const { address, lengthBytes } = areas[area]!;
    return regMr(pds[isForeign ? 1 : 0]!, address, lengthBytes, access);
  }

  /** Fills an area, from an offset on, with bytes that it never had. */
  #fill(area: number, from = 0): void {
    const { areas, index, program, seen } = this.#session;
    const { address, lengthBytes } = areas[area]!;
    const bytes = new Uint8Array(lengthBytes - from);
    const fill = this.#fills[area]! + 1;
    this.#fills[area] = fill;
    patternInto(bytes, index, area, fill, from);
    program.memory.write(address + from, bytes);
    seen.fills.push({ area, fill, atPs: this.#session.nowPs });
  }

  async refill(area: number): Promise<void> {
    await this.#waiting.until('a refill', () => this.#session.awaitedCount() === 0);
    if (!this.#session.isReadByOwn(area) && this.#session.areas[area] !== undefined) this.#fill(area);
  }

  /**
   * Fills an area that peers write to, except the words of atomics: memory that the program has reclaimed is its own
   * from this instant on.
   */
  async refillTarget(area: number): Promise<void> {
    await this.#session.program.cpu.settle();
    this.#fill(area, 8 * this.#session.plan.areas[area]!.atomicWords);
  }

  async deregister(area: number, isRenewed: boolean): Promise<void> {
    const session = this.#session;
    const open = session.areas[area];
    if (open?.mr === undefined) return;
    const { mr } = open;
    session.oldKeys.set(area, mr.lkey);
    const fromPs = session.nowPs;
    await deregMr(mr);
    open.mr = undefined;
    session.seen.deregistrations.push({ area, fromPs, toPs: session.nowPs });
    this.#fill(area);
    if (isRenewed) this.#renewed.push(await this.#register(area));
  }

  /** Registers a source again with other bytes, once no access reads it. */
  async reregister(area: number): Promise<void> {
    const { areas, plan } = this.#session;
    await this.#waiting.until('a refill', () => this.#session.awaitedCount() === 0);
    const open = areas[area];
    if (open?.mr === undefined || plan.areas[area]!.kind !== 'source' || this.#session.isReadByOwn(area))
      return;
    await this.#registerAgain(area, open, open.mr, () => this.#fill(area));
  }

  /** Creates an area again at a turn, unless receives are posted there. */
  async renew(area: number, isMoved: boolean): Promise<void> {
    const open = this.#session.areas[area];
    if (open?.mr === undefined || this.#receives.isPendingIn(area) || this.#session.isReadByOwn(area)) return;
    await this.#registerAgain(area, open, open.mr, isMoved ? () => this.#move(area, open) : () => {});
  }

  /** @param meanwhile done while the memory is the program's alone */
  async #registerAgain(area: number, open: OpenArea, mr: IbvMr, meanwhile: () => void): Promise<void> {
    this.#session.oldKeys.set(area, mr.lkey);
    open.mr = undefined;
    await deregMr(mr);
    meanwhile();
    open.mr = await this.#register(area);
  }

  /** Moves the same bytes to another address, and writes others at once to the frames that held them. */
  #move(area: number, open: OpenArea): void {
    const { memory } = this.#session.program;
    const { shiftBytes } = this.#session.plan.areas[area]!;
    const mapped = shiftBytes + open.lengthBytes + pageBytes;
    const bytes = memory.read(open.address, open.lengthBytes);
    const from = open.address - shiftBytes;
    open.address = memory.map(mapped) + shiftBytes;
    memory.write(open.address, bytes);
    memory.unmap(from, mapped);
    this.churn(Math.ceil(mapped / pageBytes));
  }

  async registerScratch(pages: number, kept: number): Promise<void> {
    const { program, pds } = this.#session;
    const lengthBytes = pages * pageBytes;
    const address = program.memory.map(lengthBytes);
    const mr = await regMr(pds[1]!, address, lengthBytes, IBV_ACCESS_LOCAL_WRITE);
    this.#scratch.push({ mr, address, lengthBytes });
    while (this.#scratch.length > kept) {
      const oldest = this.#scratch.shift()!;
      await deregMr(oldest.mr);
      program.memory.unmap(oldest.address, oldest.lengthBytes);
    }
  }

  peek(area: number, offset: number, length: number): void {
    const { areas, program, seen } = this.#session;
    const open = areas[area];
    if (open === undefined || offset + length > open.lengthBytes) return;
    const bytes = program.memory.read(open.address + offset, length);
    seen.peeks.push({ area, offset, atPs: this.#session.nowPs, bytes: base64(bytes) });
  }

  churn(pages: number): void {
    const { memory } = this.#session.program;
    const address = memory.map(pages * pageBytes);
    memory.write(address, new Uint8Array(pages * pageBytes).fill(0x5a));
    memory.unmap(address, pages * pageBytes);
  }

  async giveBack(area: number, page: number, pages: number): Promise<void> {
    const session = this.#session;
    const plan = session.plan.areas[area];
    if (plan === undefined || !isOnDemandArea(plan)) return;
    const isSource = plan.kind === 'source';
    if (isSource) await this.#waiting.until('a refill', () => session.awaitedCount() === 0);
    if (isSource && session.isReadByOwn(area)) return;
    const { address, lengthBytes } = session.areas[area]!;
    const first = Math.ceil((address + 8 * plan.atomicWords) / pageBytes) + page;
    const end = Math.min(first + pages, Math.floor((address + lengthBytes) / pageBytes));
    if (first >= end) return;
    const { cpu, memory } = session.program;
    // All that the program did before is over: the pages go at this very time.
    await cpu.settle();
    const offset = first * pageBytes - address;
    const length = (end - first) * pageBytes;
    session.seen.givenBack.push({ area, offset, length, atPs: session.nowPs });
    memory.advise(first * pageBytes, length, 'dontNeed');
    if (isSource) this.#fill(area);
  }
}
