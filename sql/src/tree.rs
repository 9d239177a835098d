//! The subset as a tree: what it cannot hold, no engine is ever asked.

/// A validated name: ASCII letters, digits and `_`, not starting with a digit, at most 63 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(pub(crate) String);

impl Name {
    /// Name as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Name for comparisons: engines ignore letter case.
    #[must_use]
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

/// Statement that a component may run during a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    Query(Query),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
}

/// Statement of a migration.
#[derive(Debug, Clone, PartialEq)]
pub enum Definition {
    CreateTable(CreateTable),
    CreateIndex(CreateIndex),
    AddColumn {
        table: Name,
        column: Column,
    },
    RenameColumn {
        table: Name,
        from: Name,
        to: Name,
    },
    DropColumn {
        table: Name,
        column: Name,
    },
    RenameTable {
        table: Name,
        to: Name,
    },
    /// Makes the table append-only from now on. Only the host knows about it.
    AppendOnly {
        table: Name,
    },
    DropTable {
        table: Name,
        if_exists: bool,
    },
    DropIndex {
        index: Name,
        if_exists: bool,
    },
    /// Changes rows.
    Change(Statement),
}

/// Types of columns and casts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Text,
    BigInt,
    Integer,
    Int,
    Double,
    Blob,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    pub table: Name,
    pub if_not_exists: bool,
    pub columns: Vec<Column>,
    pub constraints: Vec<Constraint>,
    pub append_only: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: Name,
    pub kind: Type,
    pub rules: Vec<Rule>,
}

/// Rule of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    Null,
    NotNull,
    Default(Expr),
    PrimaryKey,
    Unique,
    Check(Expr),
    References(Reference),
}

/// Constraint of a table, optionally named.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    pub name: Option<Name>,
    pub rule: TableRule,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TableRule {
    PrimaryKey(Vec<Name>),
    Unique(Vec<Name>),
    Check(Expr),
    ForeignKey {
        columns: Vec<Name>,
        reference: Reference,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    pub table: Name,
    pub columns: Vec<Name>,
    pub on_delete: Option<Reaction>,
    pub on_update: Option<Reaction>,
}

impl Reference {
    /// True if a change in another table changes or deletes rows of this one.
    #[must_use]
    pub fn reacts(&self) -> bool {
        let changes = |reaction: &Option<Reaction>| {
            matches!(
                reaction,
                Some(Reaction::Cascade | Reaction::SetNull | Reaction::SetDefault)
            )
        };
        changes(&self.on_delete) || changes(&self.on_update)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
    NoAction,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CreateIndex {
    pub index: Name,
    pub table: Name,
    pub unique: bool,
    pub if_not_exists: bool,
    pub columns: Vec<(Name, Direction)>,
    pub condition: Option<Expr>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct With {
    pub recursive: bool,
    pub tables: Vec<Cte>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cte {
    pub name: Name,
    pub columns: Vec<Name>,
    pub query: Query,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub with: Option<With>,
    pub body: Body,
    pub order_by: Vec<Order>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
}

/// SELECTs that UNION, EXCEPT and INTERSECT combine, from left to right.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    pub first: Part,
    pub rest: Vec<(Compound, Part)>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Select(Box<Select>),
    Values(Vec<Vec<Expr>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compound {
    Union,
    UnionAll,
    Except,
    Intersect,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    pub distinct: bool,
    pub results: Vec<Item>,
    pub from: Vec<Source>,
    pub condition: Option<Expr>,
    pub group_by: Vec<Expr>,
    pub having: Option<Expr>,
}

/// Result column.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    All,
    AllOf(Name),
    One { value: Expr, alias: Option<Name> },
}

/// A table of FROM with its joins.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub first: FromItem,
    pub joins: Vec<Join>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FromItem {
    Table { name: Name, alias: Option<Name> },
    Query { query: Box<Query>, alias: Option<Name> },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    pub kind: JoinKind,
    pub place: FromItem,
    pub on: On,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Cross,
}

#[derive(Debug, Clone, PartialEq)]
pub enum On {
    Nothing,
    Condition(Expr),
    Columns(Vec<Name>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub value: Expr,
    pub direction: Direction,
    pub nulls_first: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Unsaid,
    Up,
    Down,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    pub with: Option<With>,
    pub table: Name,
    pub alias: Option<Name>,
    pub columns: Vec<Name>,
    /// `None` means DEFAULT VALUES.
    pub rows: Option<Query>,
    pub conflict: Option<Conflict>,
    pub returning: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    pub columns: Vec<Name>,
    /// `None` means DO NOTHING.
    pub update: Option<(Vec<Assignment>, Option<Expr>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// Columns. Several are assigned from a row.
    pub columns: Vec<Name>,
    pub value: Expr,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    pub with: Option<With>,
    pub table: Name,
    pub alias: Option<Name>,
    pub assignments: Vec<Assignment>,
    pub from: Vec<Source>,
    pub condition: Option<Expr>,
    pub returning: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    pub with: Option<With>,
    pub table: Name,
    pub alias: Option<Name>,
    pub condition: Option<Expr>,
    pub returning: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Null,
    Boolean(bool),
    /// Digits as written, without rounding.
    Number(String),
    Text(String),
    Blob(Vec<u8>),
    Parameter(u16),
    Column {
        table: Option<Name>,
        name: Name,
    },
    Row(Vec<Expr>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Binary {
        left: Box<Expr>,
        operator: Operator,
        right: Box<Expr>,
    },
    IsNull {
        value: Box<Expr>,
        not: bool,
    },
    Is {
        value: Box<Expr>,
        truth: bool,
        not: bool,
    },
    /// IS DISTINCT FROM, or its opposite.
    Distinct {
        left: Box<Expr>,
        right: Box<Expr>,
        not: bool,
    },
    In {
        value: Box<Expr>,
        list: Vec<Expr>,
        not: bool,
    },
    InQuery {
        value: Box<Expr>,
        query: Box<Query>,
        not: bool,
    },
    Between {
        value: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        not: bool,
    },
    Like {
        value: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<char>,
        not: bool,
    },
    Case {
        operand: Option<Box<Expr>>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Cast {
        value: Box<Expr>,
        kind: Type,
    },
    Exists(Box<Query>),
    Subquery(Box<Query>),
    Function(Box<Function>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    And,
    Or,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Plus,
    Minus,
    Times,
    Divide,
    Remainder,
    Concat,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Name from the list of functions, in lower case.
    pub name: &'static str,
    pub distinct: bool,
    /// True for `count(*)`.
    pub star: bool,
    pub arguments: Vec<Expr>,
    pub order_by: Vec<Order>,
    pub filter: Option<Expr>,
    pub over: Option<Window>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<Order>,
    pub frame: Option<Frame>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    pub unit: Unit,
    pub start: Bound,
    pub end: Option<Bound>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Rows,
    Range,
    Groups,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    Current,
    /// `None` means UNBOUNDED.
    Preceding(Option<Expr>),
    Following(Option<Expr>),
}
