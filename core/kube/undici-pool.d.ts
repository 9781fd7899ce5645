/** The pool's own module: undici's entry point costs 13 MB more. */
declare module 'undici/lib/dispatcher/pool.js' {
  import { Pool } from 'undici';
  export default Pool;
}
