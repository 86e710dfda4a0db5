/** The study of parameter servers: where they stand, how many they are, and which port a round waits for. */
import { parsedTopology, racksOf, type Topology } from '../../machine/topology/index.ts';
import { type AxisValue, figureText } from '../sweep/index.ts';
import { type Flow, flowsOf, type Placement, serversAt } from '../workloads/index.ts';
import { hostAt, mostLoadedOf } from './port-load.ts';
import { bytesText, type Study, type StudyFigures, timesText } from './study.ts';

const rate = 'bytesPerSecond';
const roundTime = 'medianPs';
const hostCount = 16;
/** A multiple of every number of servers. */
const vectorBytes = 384 * 1024;
const serverCounts = [1, 2, 4, 8, 12] as const;
const topologies = [`star:${hostCount}`, `leaf-spine:2x4:${hostCount}`, `dumbbell:${hostCount}`];

type Place = Readonly<Record<string, AxisValue>>;

const probe: Place = { hosts: 2, size: 64, servers: 1, placement: 'packed' };
const placeOf = (placement: Placement, servers: number): Place => ({
  hosts: hostCount,
  size: vectorBytes,
  servers,
  placement,
});
const coLocated = placeOf('co-located', hostCount);

export const parameterServer: Study = {
  name: 'parameter-server',
  question: 'Where should parameter servers stand, how many, and which port does a round wait for?',
  spec: {
    workload: 'parameter-server,messages=3',
    vary: { topology: topologies.join(',') },
    points: [
      probe,
      ...(['packed', 'spread'] as const).flatMap((placement) =>
        serverCounts.map((servers) => placeOf(placement, servers)),
      ),
      coLocated,
    ],
  },
  reduced: { topology: `dumbbell:${hostCount}` },
  reducedPoints: [probe, placeOf('packed', 4), placeOf('spread', 4), coLocated],
  plots: topologies.map((topology) => ({
    x: 'servers',
    y: [roundTime, rate],
    by: 'placement',
    where: [`topology=${topology}`, `size=${vectorBytes}`],
  })),
  answer(figures) {
    const fabrics = figures.valuesOf('topology').map(String);
    const known = fabrics.map((name) => new Rounds(figures, name));
    const compared = known[0]!.compared;
    return [
      `With ${compared} servers among ${hostCount} hosts, the others workers, a round of ${bytesText(vectorBytes)} to the servers and back takes ${known.map((each) => each.timesText()).join('; ')}: in brackets, times the bound of alpha (a round of two hosts and ${probe['size']} bytes) and beta (bytes through the most loaded port of each phase).`,
      `The most loaded ports are ${known.map((each) => each.portsText()).join('; ')}.`,
      `Enough servers are ${known.map((each) => each.helpText()).join('; ')}: more gain less than 5 % of gradients a second.`,
    ];
  },
};

/** The points of one fabric. */
class Rounds {
  readonly #figures: StudyFigures;
  readonly #name: string;
  readonly #topology: Topology;
  /** Number of dedicated servers with which placements are compared: most that both have, if they leave half of the hosts. */
  readonly compared: number;

  constructor(figures: StudyFigures, name: string) {
    this.#figures = figures;
    this.#name = name;
    this.#topology = parsedTopology(name);
    const both = this.#countsOf('spread').filter((count) => this.#countsOf('packed').includes(count));
    this.compared = Math.max(...both.filter((count) => 2 * count <= hostCount));
  }

  timesText(): string {
    const text = (place: Place): string =>
      `${this.#text(roundTime, place)} (${Number((this.#at(roundTime, place) / this.boundPs(place)).toPrecision(3))})`;
    const [packed, spread] = [placeOf('packed', this.compared), placeOf('spread', this.compared)];
    return `on ${this.#name} ${text(packed)} packed, ${text(spread)} spread, and ${text(coLocated)} with all hosts both`;
  }

  portsText(): string {
    const places = [placeOf('packed', this.compared), placeOf('spread', this.compared), coLocated];
    return `on ${this.#name} those ${places.map((place) => this.#portText(place)).join(', ')}`;
  }

  /** How many servers are enough; judged by gradients, because each server is a worker less. */
  helpText(): string {
    const texts = (['packed', 'spread'] as const).map((placement) => {
      const counts = this.#countsOf(placement);
      const rates = counts.map((count) => this.#at(rate, placeOf(placement, count)));
      const enough = counts[rates.findIndex((value, at) => Math.max(...rates.slice(at)) < 1.05 * value)]!;
      const note = enough === counts.at(-1) ? ', the most asked' : '';
      return `${enough} ${placement} (${this.#text(rate, placeOf(placement, enough))}${note})`;
    });
    const best = Math.max(
      ...(['packed', 'spread'] as const).flatMap((placement) =>
        this.#countsOf(placement).map((count) => this.#at(rate, placeOf(placement, count))),
      ),
    );
    const shared = this.#at(rate, coLocated);
    return `on ${this.#name} ${texts.join(' and ')}, and ${hostCount} co-located ones add up ${timesText(shared / best)} the best of them, their own parts included`;
  }

  /** Alpha, and for each phase the bytes of the most loaded port at the cable's rate. */
  boundPs(place: Place): number {
    const { push, pull } = loadsOf(this.#topology, place);
    const perByte = 1e12 / this.#at('cableBytesPerSecond', place);
    return this.#at(roundTime, probe) + (push.bytes + pull.bytes) * perByte;
  }

  /** Kinds of the most loaded ports, and the measured busiest port if it is none of these. */
  #portText(place: Place): string {
    const { push, pull, servers } = loadsOf(this.#topology, place);
    const ports = [...push.ports, ...pull.ports];
    const kinds = [...new Set(ports.map((port) => kindOf(hostAt(this.#topology, port), servers)))];
    const row = this.#figures.rows.find(({ axes }) =>
      Object.entries({ ...place, topology: this.#name }).every(([axis, value]) => axes[axis] === value),
    );
    const measured = String(row?.figures['busiestPort']);
    const host = /host (\d+)/.exec(measured)?.[1];
    const found = kindOf(host === undefined ? undefined : Number(host), servers);
    const note = kinds.includes(found) ? '' : `; the busiest is ${measured}`;
    return `${kinds.join(' and ')} (${place['placement']}${note})`;
  }

  #countsOf(placement: Placement): readonly number[] {
    const counts = this.#figures.rows
      .filter(({ axes }) => axes['topology'] === this.#name && axes['size'] === vectorBytes)
      .filter(({ axes }) => axes['placement'] === placement)
      .map(({ axes }) => Number(axes['servers']));
    return counts.toSorted((left, right) => left - right);
  }

  #at(figure: string, place: Place): number {
    return this.#figures.at(figure, { ...place, topology: this.#name });
  }

  #text(figure: string, place: Place): string {
    return figureText(figure, this.#at(figure, place));
  }
}

/** The most loaded ports of both phases of a round. */
export function loadsOf(topology: Topology, place: Place) {
  const servers = serversAt(racksOf(topology), place['placement'] as Placement, Number(place['servers']));
  const pushes = flowsOf({ pattern: 'parameter-server', hostCount, servers });
  const pulls = pushes.map(({ from, to }): Flow => ({ from: to, to: from }));
  const bytes = Number(place['size']) / servers.length;
  return {
    servers,
    push: mostLoadedOf(topology, pushes, bytes),
    pull: mostLoadedOf(topology, pulls, bytes),
  };
}

/** A port by the host at its cable. */
function kindOf(host: number | undefined, servers: readonly number[]): string {
  if (host === undefined) return 'between switches';
  if (servers.length === hostCount) return 'of hosts';
  return servers.includes(host) ? 'of servers' : 'of workers';
}
