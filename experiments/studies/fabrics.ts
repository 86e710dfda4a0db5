/** Studies of fabrics of InfiniBand: many senders and one receiver, routes, a mesh of connections, and all-reduce. */
import { figureText } from '../sweep/index.ts';
import { bytesText, nsText, percentText, type Study, type StudyFigures, timesText } from './study.ts';

const rate = 'bytesPerSecond';
const slowest = 'slowestBytesPerSecond';
const p99 = 'p99Ps';

export const incast: Study = {
  name: 'incast',
  question: 'What do many senders to one receiver cost: rate, fairness, or time?',
  spec: {
    workload: 'incast,size=64Ki,messages=20',
    machine: { topology: 'star:33' },
    vary: { hosts: '3,5,9,17,33', window: '1,16' },
  },
  reduced: { hosts: '3,5', window: '1,16' },
  plots: [
    { x: 'hosts', y: [rate, slowest], by: 'window' },
    { x: 'hosts', y: [p99], by: 'window' },
  ],
  answer(figures) {
    const counts = figures.numbersOf('hosts');
    const [few, many] = [counts[0]!, counts.at(-1)!];
    const windows = figures.numbersOf('window');
    const [least, most] = [windows[0]!, windows.at(-1)!];
    const at = (hosts: number, window: number) => ({ hosts, window });
    const cable = figures.at('cableBytesPerSecond', at(many, most));
    return [
      `${many - 1} senders of 64 KiB WRITEs reach ${figures.text(rate, at(many, most))} together, ${percentText(figures.at(rate, at(many, most)) / cable)} of what the receiver's cable can carry, and the slowest has ${percentText(figures.at(slowest, at(many, most)) / figures.at('fastestBytesPerSecond', at(many, most)))} of the fastest's rate: credits lose nothing and share well.`,
      `The cost is time: with ${most} messages in flight 99 % of the messages end within ${figures.text(p99, at(few, most))} with ${few - 1} senders and ${figures.text(p99, at(many, most))} with ${many - 1}, ${timesText(figures.at(p99, at(many, most)) / figures.at(p99, at(few, most)))} as long; with ${least} in flight, ${figures.text(p99, at(many, least))}, at ${figures.text(rate, at(many, least))}.`,
      `The switch holds at most ${bytesText(figures.at('heldBytesMax', at(many, most)))} at one input, so the messages wait in their senders, which stand without credit for ${percentText(figures.at('senderWaitShare', at(many, most)))} of the time.`,
    ];
  },
};

export const tail: Study = {
  name: 'tail',
  question: 'How long do 99 % of the GETs of a key-value server take, with up to 63 clients?',
  spec: {
    // The first messages find no context in the caches: with this number they are fewer than one in a hundred.
    workload: 'outcast,verb=read,messages=1000',
    vary: { topology: 'star:2,star:9,star:64', size: '64,4K', window: '1,4' },
  },
  reduced: { topology: 'star:2,star:9', size: '64,4K', window: '1,4' },
  plots: [
    { x: 'topology', y: ['medianPs', p99], by: 'size', where: ['window=1'] },
    { x: 'topology', y: [rate], by: 'size', where: ['window=4'] },
  ],
  answer(figures) {
    const hosts = starsOf(figures);
    const [few, many] = [hosts[0]!, hosts.at(-1)!];
    const sizes = figures.numbersOf('size');
    const [small, large] = [sizes[0]!, sizes.at(-1)!];
    const at = (count: number, size: number, window: number) => ({ topology: `star:${count}`, size, window });
    const perSecond = (count: number, size: number, window: number): string =>
      `${(figures.at(rate, at(count, size, window)) / size / 1e6).toFixed(2)} million a second`;
    const times = (size: number, window: number): string =>
      `${figures.text(p99, at(few, size, window))} with one client and ${figures.text(p99, at(many, size, window))} with ${many - 1}`;
    const cable = figures.at('cableBytesPerSecond', at(many, large, 1));
    return [
      `GETs by READ of ${bytesText(small)}, one at a time for each client, take at most ${times(small, 1)} in 99 % of all cases; the server's card answers ${perSecond(few, small, 1)} and ${perSecond(many, small, 1)}, and its processor none.`,
      `Of ${bytesText(large)} they take ${times(large, 1)}: there the clients reach ${percentText(figures.at(rate, at(many, large, 1)) / cable)} of the server's cable, and each waits for the others.`,
      `Four GETs of ${bytesText(small)} in flight instead of one bring ${perSecond(many, small, 4)} with ${many - 1} clients and a 99th percentile of ${figures.text(p99, at(many, small, 4))}, ${timesText(figures.at(p99, at(many, small, 4)) / figures.at(p99, at(many, small, 1)))} as long.`,
    ];
  },
};

const routing = 'machine.routing';

export const routes: Study = {
  name: 'routes',
  question: 'How much of a permutation do shortest routes lose on a fat tree?',
  spec: {
    workload: 'permutation,size=64Ki,messages=20',
    vary: { topology: 'leaf-spine:2x4:8,leaf-spine:1x4:8,fat-tree:4', [routing]: 'min-hop,up-down,fat-tree' },
  },
  reduced: { topology: 'leaf-spine:2x4:8,fat-tree:4', [routing]: 'min-hop,fat-tree' },
  plots: [
    { x: routing, y: [rate, slowest], by: 'topology' },
    { x: routing, y: [p99, 'farWaitShare'], by: 'topology' },
  ],
  answer(figures) {
    const tree = 'fat-tree:4';
    const leaves = 'leaf-spine:2x4:8';
    const at = (topology: string, by: string) => ({ topology, [routing]: by });
    const share = (topology: string, hosts: number, by: string): string =>
      percentText(
        figures.at(rate, at(topology, by)) / (hosts * figures.at('cableBytesPerSecond', at(topology, by))),
      );
    return [
      `On ${tree} the 16 flows reach ${figures.text(rate, at(tree, 'min-hop'))} by min-hop and ${figures.text(rate, at(tree, 'fat-tree'))} by routes that spread destinations over the spines: ${share(tree, 16, 'min-hop')} and ${share(tree, 16, 'fat-tree')} of 16 cables.`,
      `By min-hop one output stands without credit for ${percentText(figures.at('farWaitShare', at(tree, 'min-hop')))} of the time, by fat-tree for ${percentText(figures.at('farWaitShare', at(tree, 'fat-tree')))}; the slowest flow has ${figures.text(slowest, at(tree, 'min-hop'))} and ${figures.text(slowest, at(tree, 'fat-tree'))}.`,
      `On ${leaves}, with as many cables up as hosts at each leaf, 8 flows reach ${share(leaves, 8, 'min-hop')} of 8 cables by min-hop and ${share(leaves, 8, 'fat-tree')} by fat-tree.`,
    ];
  },
};

const qpcMisses = 'caches.qpc.misses';
/** Bytes of a message of the mesh. */
const meshBytes = 64;
/** Messages from each host to each other. */
const meshMessages = 96;

export const mesh: Study = {
  name: 'mesh',
  question: 'How many connections can each of N hosts have to all others?',
  spec: {
    workload: `all-to-all,size=${meshBytes},messages=${meshMessages},window=32`,
    vary: { topology: 'star:4,star:8,star:16,star:32', qps: '1,4,16' },
  },
  reduced: { topology: 'star:4,star:8', qps: '1,4,16' },
  plots: [
    { x: 'topology', y: [rate, p99], by: 'qps' },
    { x: 'topology', y: [qpcMisses], by: 'qps' },
  ],
  answer(figures) {
    const hosts = starsOf(figures);
    const [few, many] = [hosts[0]!, hosts.at(-1)!];
    const at = (count: number, qps: number) => ({ topology: `star:${count}`, qps });
    const each = (count: number, qps: number): number => figures.at(rate, at(count, qps)) / meshBytes / count;
    const eachText = (count: number, qps: number): string =>
      `${(each(count, qps) / 1e6).toFixed(2)} million messages a second`;
    const points = hosts.flatMap((count) => [1, 4, 16].map((qps): MeshPoint => ({ count, qps })));
    const thrashing = points.filter((point) => repeatedMisses(figures, point) > 0.25);
    const [first] = thrashing.toSorted((left, right) => qpsOf(left) - qpsOf(right));
    const sixteen = `${eachText(few, 16)} between ${few} hosts and ${eachText(many, 16)} between ${many}`;
    return [
      `With one connection from each host to each other, a host sends ${eachText(few, 1)} between ${few} hosts and ${eachText(many, 1)} between ${many}; with sixteen, as four threads have that each reach four threads of every peer, ${sixteen}.`,
      first === undefined
        ? `Up to ${Math.max(...points.map(qpsOf))} QPs at each host, connections of both directions, fit into the card's cache of contexts.`
        : `From ${qpsOf(first)} QPs at each host on, connections of both directions, at least one message in four loads a context again that the card's cache has lost.`,
      `Four threads that share their connections, or that reach all threads of a peer by XRC, have four to each peer: between ${many} hosts that is ${qpsOf({ count: many, qps: 4 })} QPs, and ${eachText(many, 4)}.`,
    ];
  },
};

interface MeshPoint {
  readonly count: number;
  readonly qps: number;
}

/** QPs of a host: connections to its peers, and theirs to it. */
const qpsOf = ({ count, qps }: MeshPoint): number => 2 * (count - 1) * qps;

/** Loads of contexts for each message, without the first load of each. */
function repeatedMisses(figures: StudyFigures, point: MeshPoint): number {
  const { count, qps } = point;
  const misses = figures.at(qpcMisses, { topology: `star:${count}`, qps }) - count * qpsOf(point);
  return misses / (meshMessages * count * (count - 1));
}

/** Hosts of the stars of an axis `topology`, rising. */
const starsOf = (figures: StudyFigures): readonly number[] =>
  figures
    .valuesOf('topology')
    .map((name) => Number(String(name).slice('star:'.length)))
    .toSorted((left, right) => left - right);

const medianTime = 'medianPs';
const ways = ['ring', 'tree', 'halving-doubling'] as const;
type Way = (typeof ways)[number];

export const allReduce: Study = {
  name: 'all-reduce',
  question: 'How long does an all-reduce take by ring, tree and halving-doubling, and does alpha-beta tell?',
  spec: {
    workload: 'all-reduce,messages=3',
    machine: { topology: 'star:16' },
    vary: { algorithm: ways.join(','), hosts: '2,4,8,16', size: '4,4K,64K,1M,4M' },
  },
  reduced: { algorithm: ways.join(','), hosts: '2,4', size: '4,64K' },
  plots: [
    { x: 'hosts', y: [medianTime], by: 'algorithm', where: ['size=4'] },
    { x: 'size', y: [medianTime, rate], by: 'algorithm', where: ['hosts=16'] },
  ],
  answer(figures) {
    const sizes = figures.numbersOf('size');
    const [small, large] = [sizes[0]!, sizes.at(-1)!];
    const hosts = figures.numbersOf('hosts').at(-1)!;
    const at = (algorithm: Way, size: number, count = hosts) => ({ algorithm, hosts: count, size });
    const timesOf = (size: number): string =>
      ways.map((way) => `${figures.text(medianTime, at(way, size))} by ${way}`).join(', ');
    const fastest = sizes.map((size) => {
      const [best] = ways.toSorted(
        (left, right) => figures.at(medianTime, at(left, size)) - figures.at(medianTime, at(right, size)),
      );
      return `${best} at ${bytesText(size)}`;
    });
    return [
      `Over ${hosts} hosts a vector of ${bytesText(small)} takes ${timesOf(small)}; one of ${bytesText(large)} ${timesOf(large)}.`,
      `The fastest are ${fastest.join(', ')}.`,
      `Alpha and beta measured with two hosts (${nsText(alphaOf(figures, small))} and ${(1 / betaOf(figures, small, large) / 1e-3).toFixed(2)} GB/s) predict of ${bytesText(large)} over ${hosts} hosts ${ways.map((way) => `${errorText(figures, way, { small, large, hosts })} by ${way}`).join(', ')}.`,
    ];
  },
};

/** Time of a message of no bytes: with two hosts halving-doubling exchanges two messages, one after the other. */
const alphaOf = (figures: StudyFigures, small: number): number =>
  figures.at(medianTime, { algorithm: 'halving-doubling', hosts: 2, size: small }) / 2;

/** Picoseconds of a byte, half of an addition included. */
const betaOf = (figures: StudyFigures, small: number, large: number): number =>
  (figures.at(medianTime, { algorithm: 'halving-doubling', hosts: 2, size: large }) -
    2 * alphaOf(figures, small)) /
  large;

/** The model's prediction, and the distance of the measurement from it. */
function errorText(
  figures: StudyFigures,
  algorithm: Way,
  { small, large, hosts }: { readonly small: number; readonly large: number; readonly hosts: number },
): string {
  const [alpha, beta, steps] = [
    alphaOf(figures, small),
    betaOf(figures, small, large),
    Math.ceil(Math.log2(hosts)),
  ];
  const moved = (2 * (hosts - 1) * large * beta) / hosts;
  const predicted = {
    ring: 2 * (hosts - 1) * alpha + moved,
    tree: 2 * steps * (alpha + large * beta),
    'halving-doubling': 2 * steps * alpha + moved,
  }[algorithm];
  const measured = figures.at(medianTime, { algorithm, hosts, size: large });
  const error = 100 * (measured / predicted - 1);
  return `${figureText(medianTime, predicted)} (measured ${error < 0 ? '' : '+'}${error.toFixed(0)} %)`;
}
