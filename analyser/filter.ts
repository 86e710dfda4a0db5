/**
 * Selects the events that a trace keeps, by category and by filters of the form `name=value`.
 *
 *     qpn=0x41  cqn=…  srqn=…  eqn=…  mpt=…  uar=…  port=…  vector=…     an object
 *     command=SW2HW_CQ                                                   a command
 *     address=0x1000..0x1fff                                             a range of bus addresses, both ends included
 *     time=1ms..2500us                                                   a window of simulated time; an end may be left out
 *
 * Filters with the same name are alternatives; filters with different names must all match. An event without the
 * filtered property (a register access has no QP) does not match.
 */
import { ConfigurationError } from '../base/index.ts';
import {
  type ObjectKind,
  objectKinds,
  type TraceCategory,
  type TraceEvent,
  traceCategories,
} from './trace-event.ts';

type Test = (event: TraceEvent) => boolean;

const unitPs: Readonly<Record<string, number>> = { ps: 1, ns: 1e3, us: 1e6, ms: 1e9, s: 1e12 };

/**
 * Parses `mmio,commands` or `all`.
 * @throws ConfigurationError naming the unknown category
 */
export function parsedCategories(text: string): TraceCategory[] {
  if (text === 'all') return [...traceCategories];
  return text.split(',').map((name) => {
    const category = traceCategories.find((known) => known === name.trim());
    if (category !== undefined) return category;
    throw new ConfigurationError('--trace', name, `some of ${traceCategories.join(', ')}, or all`);
  });
}

export class TraceFilter {
  readonly #categories: ReadonlySet<TraceCategory>;
  readonly #tests: readonly (readonly Test[])[];

  /** @throws ConfigurationError for a filter that cannot be parsed */
  constructor(categories: readonly TraceCategory[], filters: readonly string[] = []) {
    this.#categories = new Set(categories);
    const byName = new Map<string, Test[]>();
    for (const text of filters) {
      const [name, test] = parsedFilter(text);
      byName.set(name, [...(byName.get(name) ?? []), test]);
    }
    this.#tests = [...byName.values()];
  }

  /** Whether events of this category are wanted; unwanted ones need not be built. */
  wants(category: TraceCategory): boolean {
    return this.#categories.has(category);
  }

  passes(event: TraceEvent): boolean {
    return (
      this.#categories.has(event.category) && this.#tests.every((tests) => tests.some((test) => test(event)))
    );
  }
}

function parsedFilter(text: string): [string, Test] {
  const cut = text.indexOf('=');
  const [name, value] = [text.slice(0, cut), text.slice(cut + 1)];
  if (name === 'command') return [name, (event) => event.command === value];
  if (name === 'address') return [name, addressTest(text, value)];
  if (name === 'time') return [name, timeTest(text, value)];
  const kind = objectKinds.find((known) => known === name);
  if (kind !== undefined) return [name, objectTest(text, kind, value)];
  throw new ConfigurationError(
    '--trace-filter',
    text,
    `one of command, address, time, ${objectKinds.join(', ')}, then = and a value`,
  );
}

function objectTest(text: string, kind: ObjectKind, value: string): Test {
  const number = numberOf(text, value);
  return ({ objects }) => objects[kind] === number;
}

function addressTest(text: string, value: string): Test {
  const [first, last = first] = value.split('..').map((end) => numberOf(text, end));
  return ({ address, lengthBytes = 1 }) =>
    address !== undefined && address <= last! && address + lengthBytes > first!;
}

function timeTest(text: string, value: string): Test {
  const [from = '', to = ''] = value.split('..');
  const fromPs = from === '' ? 0 : timeOf(text, from);
  const toPs = to === '' ? Number.POSITIVE_INFINITY : timeOf(text, to);
  return ({ atPs }) => atPs >= fromPs && atPs <= toPs;
}

function numberOf(text: string, value: string): number {
  if (/^(0x[0-9a-f]+|\d+)$/i.test(value)) return Number(value);
  throw new ConfigurationError('--trace-filter', text, 'a number, decimal or 0x…');
}

function timeOf(text: string, value: string): number {
  const match = /^(\d+(?:\.\d+)?)(ps|ns|us|ms|s)$/.exec(value);
  if (match === null)
    throw new ConfigurationError('--trace-filter', text, 'a time such as 1500ns, 2.5us, 1ms or 1s');
  return Number(match[1]) * unitPs[match[2]!]!;
}
