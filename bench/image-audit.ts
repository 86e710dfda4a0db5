/**
 * Compares images of booted machines with the objects that V8 finds alive. `node build/run.ts bench/image-audit '[{}]'`
 * takes options of machines. For each it prints the classes with objects that the machine created and its image lacks,
 * the objects among them that a run changed, and the objects of the image that gained fields.
 */
import '../runtime/node.ts';
import { Session } from 'node:inspector';
import {
  bandwidthClient,
  bandwidthServer,
  type PerfArgs,
  parsedWorkload,
  perfArgsOf,
} from '../experiments/workloads/index.ts';
import { Machine, type MachineOptions, type ProgramOptions } from '../machine/index.ts';

const args = perfArgsOf(parsedWorkload('write-bw,size=64,iters=100,qps=3'));
const programs: readonly ProgramOptions<PerfArgs>[] = [bandwidthClient, bandwidthServer].map((run, node) => ({
  node,
  args,
  run: (context) => run(context),
}));

const session = new Session();
session.connect();

interface Reply {
  readonly result?: { readonly objectId: string };
  readonly objects?: { readonly objectId: string };
}

const post = (method: string, params: object): Promise<Reply> =>
  new Promise((resolve, reject) => {
    session.post(method, params, (error, reply) =>
      error === null ? resolve(reply as Reply) : reject(error),
    );
  });

/** All objects that V8 finds alive. */
async function liveObjects(): Promise<object[]> {
  const { result } = await post('Runtime.evaluate', { expression: 'Object.prototype' });
  const { objects } = await post('Runtime.queryObjects', { prototypeObjectId: result!.objectId });
  const { objectId } = objects!;
  const found: { live?: object[] } = {};
  Object.assign(globalThis, { imageAudit: found });
  const functionDeclaration = 'function () { globalThis.imageAudit.live = this; }';
  await post('Runtime.callFunctionOn', { objectId, functionDeclaration });
  await post('Runtime.releaseObject', { objectId });
  return found.live!;
}

async function loaded(options: MachineOptions): Promise<Machine> {
  const machine = await Machine.create(options);
  for (const program of programs) await machine.load(program);
  return machine;
}

const bufferOf = (one: object): ArrayBufferLike | undefined =>
  ArrayBuffer.isView(one)
    ? one.buffer
    : one instanceof ArrayBuffer || one instanceof SharedArrayBuffer
      ? one
      : undefined;
const plain = new Set(['Object', 'Array', 'Set', 'Map']);
/** Promises of this module, its WeakSet, and memories, which are compared by content. */
const ofRuntime = new Set([
  'Promise',
  'DataView',
  'Uint8Array',
  'ArrayBuffer',
  'SharedArrayBuffer',
  'WeakSet',
]);
const classOf = (one: object): string => one.constructor?.name ?? 'Object';
/** Fields of plain objects, and their identity: equal texts mean equal state. */
const numbers = new WeakMap<object, number>();
let numberCount = 0;
const nameOf = (value: unknown): string => {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return String(value);
  if (!numbers.has(value)) numbers.set(value, ++numberCount);
  return `#${numbers.get(value)}`;
};
const textOf = (one: object): string =>
  [
    ...Reflect.ownKeys(one).map((key) => `${String(key)}=${nameOf(Reflect.get(one, key))}`),
    ...(one instanceof Map ? [...one].flat().map(nameOf) : []),
    ...(one instanceof Set ? [...one].map(nameOf) : []),
  ].join();
/** Streams of typed-binary are positioned again for each use. */
const placed = new Set(['BufferReader', 'BufferWriter', ...ofRuntime]);
export interface Audit {
  readonly missing: readonly string[];
  readonly changed: readonly string[];
  readonly grown: readonly string[];
}

async function audit(options: MachineOptions): Promise<Audit> {
  // State that modules keep for all machines exists before the examined machine.
  const first = await loaded(options);
  await first.run();
  await first.report();
  const before = new WeakSet(await liveObjects());
  const machine = await loaded(options);
  await machine.runToBoot();
  const live = await liveObjects();
  const image = machine.image();
  if (image === undefined) throw new Error('no image can be taken');

  const imagedBuffers = new Set([...image.objects].map(bufferOf));
  const isMissing = (one: object): boolean =>
    one !== globalThis && !before.has(one) && !image.objects.has(one) && typeof one !== 'function';
  const missing = live.filter(
    (one) => isMissing(one) && Object.getPrototypeOf(one) !== Object.getPrototypeOf(globalThis),
  );
  const missingCounts: Record<string, number> = {};
  for (const one of missing)
    if (!plain.has(classOf(one)) && !ofRuntime.has(classOf(one)))
      missingCounts[classOf(one)] = (missingCounts[classOf(one)] ?? 0) + 1;

  const kept = missing
    .filter((one) => !placed.has(classOf(one)) && one !== globalThis)
    .map((one) => [one, textOf(one)] as const);
  /** Memories that no view of the image covers, and a copy of each. */
  const memories = [...new Set(missing.map(bufferOf))]
    .filter((buffer) => buffer !== undefined && !imagedBuffers.has(buffer))
    .map((buffer) => [buffer!, Buffer.from(buffer!.slice(0))] as const);
  /** Undeclared fields that a run adds to an object would remain. */
  const fieldCounts = [...image.objects]
    .filter((one) => !ArrayBuffer.isView(one) && !Array.isArray(one))
    .map((one) => [one, Reflect.ownKeys(one).length] as const);
  await machine.run();
  await machine.report();
  const changed = [
    ...kept.filter(([one, text]) => textOf(one) !== text).map(([one, text]) => `${text} => ${textOf(one)}`),
    ...memories
      .filter(([buffer, copy]) => copy.compare(new Uint8Array(buffer)) !== 0)
      .map(([buffer]) => `${buffer.byteLength} bytes`),
  ];
  const grown = fieldCounts
    .filter(([one, count]) => !plain.has(classOf(one)) && Reflect.ownKeys(one).length !== count)
    .map(([one]) => classOf(one));
  return { missing: Object.keys(missingCounts).toSorted(), changed, grown };
}

const audits: Audit[] = [];
for (const options of JSON.parse(process.argv[2] ?? '[{}]') as MachineOptions[])
  audits.push(await audit(options));
process.stdout.write(JSON.stringify(audits));
