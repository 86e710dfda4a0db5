/** Interface of this room: see README.md. */
export { closeTcp, openTcp, queryTcp, receiveTcp, sendTcp, type TcpCommand } from './tcp-commands.ts';
