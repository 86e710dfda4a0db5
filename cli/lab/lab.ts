/** `hca lab`: serves the lab on loopback until it is interrupted. */
import { once } from 'node:events';
import type { Command } from 'commander';
import { integer, refuseTopologyOption } from '../options.ts';
import { labFolder } from './lab-folder.ts';
import { serveLab } from './lab-server.ts';

const defaultPort = 8420;

export function addLabCommand(program: Command): void {
  const command = program
    .command('lab')
    .description('serve the lab: watch an operation, change a parameter, write a program, in a browser')
    .option('--port <n>', 'port on 127.0.0.1; 0 is any that is free', integer(0, 65_535), defaultPort)
    .action(lab);
  refuseTopologyOption(command, 'left out: the lab shows two hosts and the cable between them');
}

async function lab({ port }: { readonly port: number }): Promise<void> {
  await using server = await serveLab(labFolder(), port);
  process.stdout.write(`The lab is at ${server.url} until Ctrl-C.\n`);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
}
