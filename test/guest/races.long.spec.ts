/**
 * Races of drivers, found on purpose: five modules with one race each, and their corrections (races/). None strikes without chance; seeds of
 * `--jitter` find each of them, the same seed at the same instant again, and no correction is struck.
 */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { LinuxMachine } from '../../guests/linux/inside/index.ts';
import { builtModule } from './built-modules.ts';
import { cache, reasonAgainstInside } from './inside-suite.ts';

const reason = await reasonAgainstInside('debian');
const seeds = [1, 2];
/** Ten modules are built, a guest boots, and six runs load its drivers. */
const runsTimeoutMs = 2_400_000;

interface Race {
  readonly number: number;
  readonly title: string;
  readonly source: string;
  /** Time of the module between two checks, or until it takes a command for done. */
  readonly waitNs: number;
}

const races: readonly Race[] = [
  ...[
    { number: 1, title: 'rings before the mailbox is written', waitNs: 0 },
    { number: 2, title: 'reads the data before the owner', waitNs: 2000 },
    { number: 3, title: 'gives its buffer away before the command ends', waitNs: 12_000 },
  ].map((race) => ({ ...race, source: 'command-race.c' })),
  ...[
    { number: 4, title: 'arms after polling and sleeps without polling again', waitNs: 0 },
    { number: 5, title: 'clears an event after it has handled it', waitNs: 0 },
  ].map((race) => ({ ...race, source: 'event-race.c' })),
];
const nameOf = ({ number }: Race, isFixed: boolean): string => `race_${number}${isFixed ? '_fixed' : ''}`;
const loadDrivers =
  'modprobe -a mlx4_core mlx4_ib; until grep -q ACTIVE /sys/class/infiniband/*/ports/1/state; do sleep 0.02; done';

/** Last line of each module in the kernel's log, by its name. */
type Outcomes = ReadonlyMap<string, string>;

describe.skipIf(reason !== undefined && process.env['CI'] !== 'true')('races of drivers', () => {
  let modules: readonly string[];
  const outcomes = new Map<number | undefined, Outcomes>();

  /** Loads each module; those of the command register need the adapter for themselves. */
  async function outcomesOf(jitter: number | undefined): Promise<Outcomes> {
    const machine = await LinuxMachine.start({
      ...{ kernel: 'debian', cache, pc: { coreMhz: 500 }, jitter, ownFiles: { copies: [], modules } },
    });
    const said = new Map<string, string>();
    for (const race of races) {
      if (race.number === 4) await machine.check(0, loadDrivers, 'loading the drivers', 60);
      for (const isFixed of [false, true]) {
        const name = nameOf(race, isFixed);
        const command = `modprobe ${name} 2>/dev/null; dmesg | grep 'race ${race.number}:' | tail -n 1`;
        said.set(name, await machine.check(0, command, name, 60));
      }
    }
    machine.close();
    return said;
  }

  beforeAll(async () => {
    expect(reason).toBeUndefined();
    const built: string[] = [];
    for (const race of races)
      for (const isFixed of [false, true]) {
        const defines = [`RACE=${race.number}`, `WAIT_NS=${race.waitNs}`, ...(isFixed ? ['FIXED'] : [])];
        const source = fileURLToPath(new URL(`races/${race.source}`, import.meta.url));
        built.push(await builtModule(source, nameOf(race, isFixed), defines));
      }
    modules = built;
    for (const jitter of [undefined, ...seeds]) outcomes.set(jitter, await outcomesOf(jitter));
  }, runsTimeoutMs);

  it.each(races)('$number: $title', (race) => {
    const [wrong, fixed] = [nameOf(race, false), nameOf(race, true)];
    expect(outcomes.get(undefined)!.get(wrong)).toMatch(/: \d+ rounds/);
    expect(seeds.filter((seed) => outcomes.get(seed)!.get(wrong)!.includes('struck'))).not.toEqual([]);
    for (const each of outcomes.values()) expect(each.get(fixed)).toMatch(/: \d+ rounds/);
  });

  it(
    'strike at the same instants with the same seed',
    async () => {
      expect(await outcomesOf(seeds[0])).toEqual(outcomes.get(seeds[0]));
    },
    runsTimeoutMs,
  );
});
