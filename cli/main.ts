/** Runs the command line with the process's arguments. */
import '../runtime/node.ts';
import { runCommandLine } from './command-line.ts';
import { watchStandardOutput } from './output.ts';

watchStandardOutput();
await runCommandLine(process.argv.slice(2));
