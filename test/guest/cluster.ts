/**
 * Redis and Slurm from Debian's packages, unpacked into the cache of guests/linux and not installed, on loopback and on free
 * ports; the caller that starts a process ends it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { libraryFoldersOf } from '../../guests/linux/packages/architecture.ts';
import { defaultCacheFolder, ensureKits } from '../../guests/linux/packages/cache.ts';
import type { Kit } from '../../guests/linux/packages/kits.ts';
import { silentProgress } from '../../guests/linux/progress.ts';
import { treeProgram } from '../../guests/linux/tree-program.ts';

const clusterKit: Kit = {
  name: 'cluster',
  title: 'Redis and Slurm',
  architecture: 'amd64',
  suites: ['bookworm'],
  preferredSuite: undefined,
  packages: ['redis-server', 'slurmctld', 'slurmd', 'slurm-client', 'munge'],
  standIns: [
    ...['debconf', 'dpkg', 'ucf', 'adduser', 'passwd', 'login', 'base-passwd', 'perl', 'perl-base', 'tar'],
    ...['init-system-helpers', 'lsb-base', 'sysvinit-utils', 'sensible-utils', 'systemd', 'udev', 'procps'],
    ...['openssl', 'logrotate', 'libpam-systemd'],
  ],
  isKernel: false,
};

/** Debian has Valkey from release 13 on. */
const valkeyKit: Kit = {
  ...clusterKit,
  name: 'valkey',
  title: 'Valkey',
  suites: ['trixie'],
  packages: ['valkey-server'],
};

/** Folder of an unpacked kit; fetches it if it is missing. @throws ConfigurationError if it is unavailable */
async function treeOf(kit: Kit): Promise<string> {
  const cache = { folder: defaultCacheFolder(), mirror: undefined, progress: silentProgress };
  const [folder] = await ensureKits([kit], cache);
  return folder!;
}

/** Unused ports on loopback. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}

/** Waits for a condition. @throws Error if it does not hold within ten minutes */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 600_000;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`timed out waiting for ${what}`);
    await sleep(50);
  }
}

/** A process of ours, and its output. */
export class Started implements AsyncDisposable {
  readonly child: ChildProcess;
  text = '';
  readonly #closed: Promise<unknown>;

  constructor(
    file: string,
    args: readonly string[],
    options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
  ) {
    this.child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#closed = once(this.child, 'close');
    for (const stream of [this.child.stdout!, this.child.stderr!])
      stream.setEncoding('utf8').on('data', (piece: string) => {
        this.text += piece;
      });
  }

  /** @returns exit code, or the signal that ended it */
  async ended(): Promise<number | string> {
    await this.#closed;
    return this.child.exitCode ?? this.child.signalCode!;
  }

  kill(signal: NodeJS.Signals): Promise<number | string> {
    this.child.kill(signal);
    return this.ended();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) await this.kill('SIGKILL');
  }
}

export interface QueueServer extends AsyncDisposable {
  readonly url: string;
}

/** A private server for queues. */
export async function startQueueServer(name: 'redis' | 'valkey'): Promise<QueueServer> {
  const tree = await treeOf(name === 'redis' ? clusterKit : valkeyKit);
  const folder = mkdtempSync(join(tmpdir(), `hca-${name}-`));
  const [port] = await freePorts(1);
  const { file, arguments: before } = treeProgram(tree, `usr/bin/${name}-server`);
  const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--dir', folder];
  const server = new Started(file, [...before, ...options]);
  await until(name, () => server.text.includes('Ready to accept connections'));
  return {
    url: `redis://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A Slurm of one machine with two processors. */
export interface Slurm extends AsyncDisposable {
  /** Environment with its commands in the PATH. */
  readonly env: NodeJS.ProcessEnv;
}

const clients = ['sbatch', 'squeue', 'scancel', 'sinfo'];
const pluginFolder = 'usr/lib/x86_64-linux-gnu/slurm-wlm';

/** Munge, by which all parts of Slurm authenticate each other, a controller, and a machine that runs jobs as the user of this process. */
export async function startSlurm(): Promise<Slurm> {
  const tree = await treeOf(clusterKit);
  const folder = mkdtempSync(join(tmpdir(), 'hca-slurm-'));
  // Munge requires a folder that others cannot write to, but in which they can find its socket.
  chmodSync(folder, 0o755);
  for (const name of ['bin', 'state', 'spool']) mkdirSync(join(folder, name));
  const [controlPort, machinePort] = await freePorts(2);
  const configuration = join(folder, 'slurm.conf');
  writeFileSync(configuration, configurationText(tree, folder, [controlPort!, machinePort!]));
  const environment = { ...process.env, SLURM_CONF: configuration };
  const programOf = (path: string): [string, string[]] => {
    const { file, arguments: before } = treeProgram(tree, path, path.split('/').at(-1));
    const libraries = [...libraryFoldersOf('amd64'), pluginFolder].map((each) => join(tree, each)).join(':');
    return [file, before.map((word, at) => (before[at - 1] === '--library-path' ? libraries : word))];
  };
  const asCommand = (name: string, path: string): string => {
    const [file, before] = programOf(path);
    const words = [file, ...before].map((word) => `'${word}'`).join(' ');
    const script = join(folder, 'bin', name);
    writeFileSync(script, `#!/bin/sh\nSLURM_CONF='${configuration}' exec ${words} "$@"\n`, { mode: 0o755 });
    return script;
  };
  for (const name of clients) asCommand(name, `usr/bin/${name}`);
  const stepper = asCommand('slurmstepd', 'usr/sbin/slurmstepd-wlm');
  const started: Started[] = [];
  const start = (path: string, args: readonly string[]): Started => {
    const [file, before] = programOf(path);
    const process = new Started(file, [...before, ...args], { env: environment });
    started.unshift(process);
    return process;
  };
  const slurm: Slurm = {
    env: { ...environment, PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}` },
    async [Symbol.asyncDispose]() {
      for (const process of started) await process[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    writeFileSync(join(folder, 'munge.key'), randomBytes(1024), { mode: 0o600 });
    const own = [
      'key-file=munge.key',
      'socket=munge.socket',
      'pid-file=munge.pid',
      'log-file=munge.log',
      'seed-file=munge.seed',
    ];
    const munge = start('usr/sbin/munged', [
      '--foreground',
      '--force',
      ...own.map((each) => `--${each.replace('=', `=${folder}/`)}`),
    ]);
    await until(
      'Munge',
      () => munge.text.includes('Created socket') || munge.text.includes('Created 2 work threads'),
    );
    start('usr/sbin/slurmctld-wlm', ['-D', '-f', configuration]);
    start('usr/sbin/slurmd-wlm', ['-D', '-f', configuration, '-N', 'machine', '-d', stepper]);
    await until('Slurm', async () => {
      await using info = new Started(join(folder, 'bin', 'sinfo'), ['--noheader', '--format=%T']);
      return (await info.ended()) === 0 && info.text.trim() === 'idle';
    });
    return slurm;
  } catch (error) {
    await slurm[Symbol.asyncDispose]();
    throw new Error(`${String(error)}: ${started.map(({ text }) => text.slice(-2000)).join('\n')}`);
  }
}

const configurationText = (
  tree: string,
  folder: string,
  [controlPort, machinePort]: readonly number[],
): string => `
ClusterName=hca
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=${controlPort}
SlurmUser=${userInfo().username}
SlurmdUser=${userInfo().username}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket=${folder}/munge.socket
CredType=cred/munge
PluginDir=${join(tree, pluginFolder)}
StateSaveLocation=${folder}/state
SlurmdSpoolDir=${folder}/spool
SlurmctldPidFile=${folder}/slurmctld.pid
SlurmdPidFile=${folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
MpiDefault=none
ReturnToService=2
KillWait=1
NodeName=machine NodeHostname=localhost NodeAddr=127.0.0.1 Port=${machinePort} CPUs=2 RealMemory=100 State=UNKNOWN
PartitionName=all Nodes=machine Default=YES MaxTime=INFINITE State=UP
`;
